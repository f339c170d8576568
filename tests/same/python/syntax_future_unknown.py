from __future__ import teleportation
