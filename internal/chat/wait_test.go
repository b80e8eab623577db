package chat

import "context"

// next returns the next message. It returns false if the watcher was dropped or
// ctx is done.
func (w *Watcher) next(ctx context.Context) ([]byte, bool) {
	if len(w.first) > 0 {
		data := w.first[0]
		w.first = w.first[1:]
		return data, true
	}
	select {
	case data := <-w.queue:
		return data, true
	default:
	}
	select {
	case data := <-w.queue:
		return data, true
	case <-w.done:
		return nil, false
	case <-ctx.Done():
		return nil, false
	}
}

// wait waits until no reply is in progress and everything has been sent.
func (s *Session) wait(ctx context.Context) error {
	s.mu.Lock()
	t := s.turn
	s.mu.Unlock()
	if t != nil {
		select {
		case <-t.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (s *Session) currentTitle() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.title
}
