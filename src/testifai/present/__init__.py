"""How results are shown: figures, terminal, notebook, data frames, files, sheets of inputs."""
