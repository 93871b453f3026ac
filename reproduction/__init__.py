"""The paper of Liu and Zhao, computed again: `make reproduce`, or `python -m reproduction --help`.

`experiments` computes the risks through cellrisk's public interface, `claims` compares them with the print, `figures`
draws them, and `__main__` writes the page. `bankruptcy` reads the one dataset that cellrisk does not ship.
"""
