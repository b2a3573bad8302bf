"""Runs work on a PyTorch device."""
