package llm

import (
	"context"
	"iter"
	"log/slog"
	"time"
)

// WithDebugLog returns a model that logs every request and its outcome at debug
// level, without the content.
func WithDebugLog(m Model, log *slog.Logger) Model { return &logged{m, log} }

type logged struct {
	Model
	log *slog.Logger
}

// Stream implements Model.
func (l *logged) Stream(ctx context.Context, req Request) iter.Seq2[Event, error] {
	inner := l.Model.Stream(ctx, req)
	if !l.log.Enabled(ctx, slog.LevelDebug) {
		return inner
	}
	return func(yield func(Event, error) bool) {
		info, begun := l.Info(), time.Now()
		log := l.log.With("model", info.Model, "provider", string(info.Provider))
		log.DebugContext(ctx, "model request", "messages", len(req.Messages), "tools", req.Tools != nil)
		for e, err := range inner {
			switch {
			case err != nil:
				log.DebugContext(ctx, "model request failed", "took", time.Since(begun), "err", err)
			case e.Turn != nil:
				log.DebugContext(ctx, "model answered", "took", time.Since(begun), "stop", string(e.Turn.Stop), "usage", e.Turn.Usage)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
