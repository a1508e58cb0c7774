"""How long stages take: what they compute, how fast the machine is, and how long such stages took before."""
