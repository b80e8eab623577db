package upstream

import "time"

// SetListWait sets how long ListFor waits for a server, before Run.
func (s *Supervisor) SetListWait(d time.Duration) { s.listWait = d }
