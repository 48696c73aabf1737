from ._embed import embed as embed
from ._reduce import Reduction as Reduction
from ._reduce import reduce as reduce
