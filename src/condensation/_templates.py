"""Pages: one HTML file from a template that stands beside the code that fills it."""

from jinja2 import Environment, PackageLoader, StrictUndefined


def page_environment(package: str) -> Environment:
    """The templates of a package: everything is escaped, and a name that is missing is an error."""
    return Environment(
        loader=PackageLoader(package, "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
