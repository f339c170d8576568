raise GeneratorExit("odd")
