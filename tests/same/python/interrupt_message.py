raise KeyboardInterrupt("with words")
