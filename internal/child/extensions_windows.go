package child

func extensions(command, pathext string) []string { return withExtensions(command, pathext) }
