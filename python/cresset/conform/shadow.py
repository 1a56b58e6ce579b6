Shadow = WrongOperator = None
