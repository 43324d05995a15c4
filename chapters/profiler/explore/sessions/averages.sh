python -m torch_openreg.explore averages.py || true
