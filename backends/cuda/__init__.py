"""The CUDA backend: kernels as PTX, and the devices that run them."""
