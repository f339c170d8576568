class Thing:
    colour = 1
Thing().color
