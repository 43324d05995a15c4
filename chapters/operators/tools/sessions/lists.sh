python -m torch_openreg.dispatch --overridden
python -m torch_openreg.dispatch --refused | grep aten
