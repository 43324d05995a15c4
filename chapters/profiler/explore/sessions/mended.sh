python -m torch_openreg.explore mended.py
