"""The operator's log level: what the ClusterVersionOperator object asks for, in force at once."""
