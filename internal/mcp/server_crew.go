package mcp

import "time"

// crewRest is how long a goroutine waits for its next call.
const crewRest = 5 * time.Second

// crew is where calls are carried out: on goroutines that wait a while for
// the next one. A call's stack grows deep, and growing it anew for each is a
// good part of what a call costs.
type crew struct {
	next   chan func()
	closed <-chan struct{}
}

func newCrew(closed <-chan struct{}) crew {
	return crew{next: make(chan func()), closed: closed}
}

// do carries out f, at once, and does not wait for it.
func (c crew) do(f func()) {
	select {
	case c.next <- f: // someone is free
	default:
		go c.work(f)
	}
}

func (c crew) work(f func()) {
	rest := time.NewTimer(crewRest)
	defer rest.Stop()
	for {
		f()
		rest.Reset(crewRest)
		select {
		case f = <-c.next:
		case <-rest.C:
			return
		case <-c.closed:
			return
		}
	}
}
