import math
import pickle
import time
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condensation._formula import FUNCTIONS, MOST_CHARACTERS, MOST_NESTED, Formula
from condensation.errors import InputError

ONE = [name for name, (takes, _) in FUNCTIONS.items() if takes == 1]
TWO = [name for name, (takes, _) in FUNCTIONS.items() if takes == 2]
ATOMS = st.sampled_from(["x", "y", "z_1", "pi", "e", "F(2)", "F(0.5)", "F(.25)", "F(3.)", "F(1e-3)", "F(7)"])


def bigger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    signs = st.sampled_from(["+", " - ", "*", " / ", "**", " ** -"])
    return st.one_of(
        st.builds("{}{}{}".format, inner, signs, inner),  # without parentheses: Python says what comes first
        st.builds("({})".format, inner),
        st.builds("-{}".format, inner),
        st.builds("{}({})".format, st.sampled_from(ONE), inner),
        st.builds("{}( {}, {})".format, st.sampled_from(TWO), inner, inner),
    )


EXPRESSIONS = st.recursive(ATOMS, bigger, max_leaves=12).filter(lambda text: len(text) <= MOST_CHARACTERS)
NUMBERS = st.floats(-3, 3) | st.sampled_from([0.0, 1.0, -1.0, 1e300, -1e-300, math.inf, math.nan])


def evaluated(text: str, **values: float) -> float:
    """Python's own reading; ``F(2)`` is a number as NumPy's float, so that 1 / 0 is inf and not an error."""
    known = {name: function for name, (_, function) in FUNCTIONS.items()}
    known |= {name: np.float64(value) for name, value in (values | {"pi": math.pi, "e": math.e}).items()}
    with np.errstate(all="ignore"):
        return float(eval(text, {"__builtins__": {}}, known | {"F": np.float64}))


@given(EXPRESSIONS, NUMBERS, NUMBERS, NUMBERS)
def test_what_python_evaluates(text, x, y, z_1):
    value = Formula(text.replace("F(", "("))(x=x, y=y, z_1=z_1)
    assert type(value) is float
    np.testing.assert_array_equal(value, evaluated(text, x=x, y=y, z_1=z_1))


@given(EXPRESSIONS, st.lists(st.floats(0.1, 2), min_size=1, max_size=9))
def test_an_array_holds_what_its_numbers_give(text, x):
    formula = Formula(text.replace("F(", "("))
    values = {"y": 0.7, "z_1": -0.4}
    many = formula(x=np.array(x)[:, None], **values)
    assert np.shape(many) == ((len(x), 1) if "x" in formula.names else ())
    many = np.broadcast_to(many, (len(x), 1))[:, 0]
    one, moved = (np.array([formula(x=number * by, **values) for number in x], float) for by in (1, 1 + 1e-12))
    steady = np.isclose(one, moved, rtol=1e-6, equal_nan=True)  # NumPy rounds otherwise in arrays
    np.testing.assert_allclose(many[steady], one[steady], rtol=1e-5)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(gamma - gamma_prime) / 2", 0.75),
        ("-2**2", -4.0),
        ("2**3**2", 512.0),
        ("2**-1", 0.5),
        ("8 - 4 - 2", 2.0),
        ("8 / 4 / 2", 1.0),
        ("7 / 2", 3.5),
        (" \t(1\n + 1)\r\n", 2.0),
        ("--1", 1.0),
        ("max(2, min(5, 3))", 3.0),
        ("relu(-1) + relu(2)", 2.0),
        ("sign(-3) * abs(-3)", -3.0),
        ("cos(pi) + log(e)", 0.0),
        ("sin(1)**2 + cos(1)**2", 1.0),
        ("tan(1) - sin(1) / cos(1)", 0.0),
        ("tanh(1) - (exp(2) - 1) / (exp(2) + 1)", 0.0),
        ("1 / 0", math.inf),
        ("-1 / 0", -math.inf),
        ("0 / 0", math.nan),
        ("(-8) ** (1 / 3)", math.nan),
        ("sqrt(-1)", math.nan),
        ("log(0)", -math.inf),
        ("10 ** 400", math.inf),
        ("1 / 10 ** 400", 0.0),
    ],
)
def test_values(text, value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Formula(text)(gamma=2, gamma_prime=0.5)
    assert type(found) is float
    assert found == pytest.approx(value, abs=1e-15, nan_ok=True)


def test_names_are_the_variables():
    assert Formula("sin(pi * x) + e * max(a_1, x)").names == {"x", "a_1"}
    assert Formula("2 ** pi").names == frozenset()
    assert Formula("self + self")(self=2, unused="tanh") == 4.0


def test_a_formula_is_a_value():
    formula = Formula("x + 1")
    assert formula == Formula("x + 1")
    assert len({formula, Formula("x + 1"), Formula("x+1")}) == 2
    assert pickle.loads(pickle.dumps(formula))(x=1) == 2.0


def test_what_is_passed_in_is_never_given_back():
    x = np.arange(3)
    found = Formula("x")(x=x)
    assert isinstance(found, np.ndarray)
    assert found.dtype == float
    found[0] = 9.0
    assert x[0] == 0


MALICIOUS = [
    "__import__('os').system('true')",
    "__import__(os)",
    "x.__class__",
    "().__class__.__bases__[0].__subclasses__()",
    "(1).real",
    "1..real",
    "[x for x in (1, 2)]",
    "sin(x for x in y)",
    "{x: 1}",
    "lambda: 1",
    "lambda",
    "f'{x}'",
    "'a' * 10 ** 9",
    "b'a'",
    "(x := 1)",
    "x[0]",
    "x if y else 1",
    "1if x else 2",
    "x and y",
    "not x",
    "x < y",
    "x == y",
    "x = 1",
    "~x",
    "x @ y",
    "x % 2",
    "x // 2",
    "x << 9",
    "x & y",
    "x | y",
    "+x",
    "await x",
    "yield x",
    "x; y",
    "x # y",
    "x \\\n y",
    "x, y",
    "()",
    "max(*x)",
    "max(**x)",
    "max(a=1, b=2)",
    "sin(x)(y)",
    "2(x)",
    "sin(sin)(x)",
    "eval(x)",
    "open(x)",
    "True",
    "None",
    "...",
    "1j",
    "0x10",
    "0b1",
    "1_000",
    "01",
    "1e400",
    "9" * 400,
    "",
    " ",
    "\x00",
    "x\x00",
    "x\x0cy",
    "\ud800",
    "\N{GREEK SMALL LETTER GAMMA}",
    "\N{FULLWIDTH LATIN SMALL LETTER X}",  # which Python reads as x
    "\N{FULLWIDTH LATIN SMALL LETTER S}in(x)",
    "\N{MATHEMATICAL BOLD SMALL X} + x",
    "\N{ARABIC-INDIC DIGIT THREE}",
    "x\u200b",
    "x²",
    "x\u2028y",
]


@pytest.mark.parametrize("text", MALICIOUS)
def test_everything_else_is_refused(text):
    with pytest.raises(InputError, match="formula"):
        Formula(text)


@pytest.mark.parametrize(
    "text",
    [
        "x" * (MOST_CHARACTERS + 1),
        "1" * 10**6,
        "(" * 250 + ")" * 250,
        "(" * 51 + "x" + ")" * 51,
        "-" * 499 + "x",
        "2**" * 166 + "2",
        "(" * 499,
        "sin(" * 99 + "x" + ")" * 99,
        "1+(" * 120 + "x" + ")" * 120,
        "- " * 51 + "x",
    ],
)
def test_long_and_deep_ones_are_refused_at_once(text):
    began = time.thread_time()
    with pytest.raises(InputError, match="at most"):
        Formula(text)
    assert time.thread_time() - began < 5  # without the bounds: minutes, or all memory


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("+".join(["x"] * 250), 250.0),
        ("x" + "/x" * 249, 1.0),
        ("(" * MOST_NESTED + "x" + ")" * MOST_NESTED, 1.0),
        ("-" * MOST_NESTED + "x", 1.0),
        ("x**" * MOST_NESTED + "x", 1.0),
        ("9**9**9**9", math.inf),
        ("9**(9**9)*9**(9**9)", math.inf),
        ("(9**99999999)**99999999", math.inf),
    ],
)
def test_what_is_within_the_bounds_is_quick(text, value):
    began = time.thread_time()
    assert Formula(text)(x=1) == value
    assert time.thread_time() - began < 5  # without the bounds: minutes, or all memory


@given(st.text(max_size=60) | st.text("()+-*/.,x1e _\n^[]{}'\"\\=:;@~%<>!&|#sin", max_size=60))
def test_any_text_is_a_formula_or_refused(text):
    try:
        formula = Formula(text)
    except InputError:
        return
    assert type(formula(**dict.fromkeys(formula.names, 1.5))) is float


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x^2", "write \\*\\* for a power"),
        ("2x", "2x in the formula '2x' is no number; a product is written 2 \\* x"),
        ("sinn(x)", "'sinn'; did you mean 'sin'"),
        ("max(1, 2, 3)", "max in the formula 'max\\(1, 2, 3\\)' is not written max\\(a, b\\)"),
        ("sin(x, y)", "is not written sin\\(a\\)"),
        ("sin + 1", "sin in the formula 'sin \\+ 1' is a function: write sin\\(a\\)"),
        ("x // 2", "// in the formula"),
        ("x + y, 1", "holds several values"),
        ("  x +* y", "cannot be read at character 6"),
        ("x.y", "'.' at character 2"),
    ],
)
def test_the_error_says_what_would_have_worked(text, said):
    with pytest.raises(InputError, match=said):
        Formula(text)


def test_values_that_do_not_fit_are_refused(unchecked):
    with pytest.raises(InputError, match="needs gamma_prime, but given were: gamma, m"):
        Formula("gamma - gamma_prime")(gamma=1.0, m=100)
    with pytest.raises(InputError, match="needs x, y, but given were: nothing"):
        Formula("y * x")()
    with pytest.raises(InputError, match=r"e is the constant 2\.7183"):
        Formula("e * x")(x=1.0, e=3.0)
    assert Formula("x")(x=1.0, e=3.0) == 1.0
    for wrong in ("tanh", None, 1j, True, [[1], [1, 2]], {}):
        with pytest.raises(InputError, match="the variable x must be a real number"):
            Formula("x")(x=wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"do not fit: x \(2,\), y \(3,\)"):
        Formula("x + y")(x=np.ones(2), y=np.ones(3))
    with pytest.raises(InputError, match="must be a text such as"):
        Formula(2.0)  # type: ignore[arg-type]
