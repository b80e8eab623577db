package child

// TryWrite writes nothing: a pipe of this system cannot be written to without
// perhaps being waited for. The rest is to be written with Write.
func (p *Process) TryWrite([]byte) (n int, err error) { return 0, nil }
