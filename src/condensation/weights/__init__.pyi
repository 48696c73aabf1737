from ._files import ModelFile as ModelFile
from ._files import open_model_file as open_model_file
from ._layout import Units as Units
from ._measure import measure_arrays as measure_arrays
from ._measure import measure_listed as measure_listed
from ._measure import units_of_arrays as units_of_arrays
from ._measured import Measured as Measured
from ._series import measure_path as measure_path
