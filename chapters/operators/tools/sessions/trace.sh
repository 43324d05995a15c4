python -m torch_openreg.dispatch --trace model.py
