import math


def twice(x):
    return x + x


def root(x):
    return math.sqrt(x)
