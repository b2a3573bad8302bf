"""How what `benchmarks/grids` holds is measured anew: a module to a family of files, each with a `record`.

`record(out, data, device)` writes the family's files into `out` from the models and data below `data`, and raises
MissingFileError for what it cannot do without. One that takes `inputs` as well can be cut short. A new family is a
module: nothing lists them. One whose name begins with an underscore is no family.
"""
