"""PyTorch C++ and CUDA extensions: requests, minimal headers, builds."""
