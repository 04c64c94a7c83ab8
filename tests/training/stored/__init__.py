"""Tests of training.stored."""
