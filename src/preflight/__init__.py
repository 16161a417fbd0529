"""preflight: will these machines train this model, and if not, what is at fault?"""

__version__ = "0.1.0"
