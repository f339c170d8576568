value = "x" * 3 + undefined_name_at_the_end_of_a_line_that_is_quite_long + "y" * 200 + str(list(range(100))) + "z"
