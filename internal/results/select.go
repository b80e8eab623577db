package results

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/itchyny/gojq"

	"junctor/internal/tool"
)

// Limits of one expression. gojq itself has none, so the language is restricted
// to what can be bounded (restrict.go), and few expressions run concurrently.
const (
	maxExpression = 2 << 10
	maxInput      = 32 << 20
	maxOutputs    = 100_000
	maxShape      = 600
)

// selectTimeout is the timeout of one expression.
var selectTimeout = time.Second

var selectSlots = make(chan struct{}, 2)

// Check returns an error if a jq expression is not valid or not allowed.
func Check(expression string) error {
	_, err := compile(expression)
	return err
}

// Select applies a jq expression to a value and returns its output, or a list
// of outputs unless there is exactly one. Errors of the expression include the
// shape of the value.
func Select(ctx context.Context, expression string, value json.RawMessage) (json.RawMessage, error) {
	code, err := compile(expression)
	if err != nil {
		return nil, invalidSelect(expression, value, err)
	}
	if len(value) > maxInput {
		return nil, &tool.Error{Kind: tool.TooLarge, Msg: fmt.Sprintf("the result has %d bytes; select works on up to %d", len(value), maxInput)}
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	var input any
	if err := dec.Decode(&input); err != nil {
		return nil, fmt.Errorf("parse the result: %w", err)
	}
	select {
	case selectSlots <- struct{}{}:
		defer func() { <-selectSlots }()
	case <-ctx.Done():
		return nil, &tool.Error{Kind: tool.Canceled, Msg: "the call was cancelled", Err: ctx.Err()}
	}
	outputs, err := evaluate(ctx, code, input)
	if err != nil {
		return nil, invalidSelect(expression, value, err)
	}
	var out any = outputs
	if len(outputs) == 1 {
		out = outputs[0]
	}
	if err := bounded(out); err != nil {
		return nil, invalidSelect(expression, value, err)
	}
	return gojq.Marshal(out)
}

func evaluate(ctx context.Context, code *gojq.Code, input any) ([]any, error) {
	within, cancel := context.WithTimeout(ctx, selectTimeout)
	defer cancel()
	outputs := []any{}
	for run := code.RunWithContext(within, input); ; {
		out, ok := run.Next()
		if !ok {
			return outputs, nil
		}
		if err, failed := out.(error); failed {
			if within.Err() != nil && ctx.Err() == nil {
				err = fmt.Errorf("it takes longer than %s", selectTimeout)
			}
			return nil, err
		}
		if outputs = append(outputs, out); len(outputs) > maxOutputs {
			return nil, fmt.Errorf("it has more than %d outputs", maxOutputs)
		}
	}
}

func invalidSelect(expression string, value json.RawMessage, err error) error {
	return &tool.Error{Kind: tool.InvalidArguments, Err: err, Msg: fmt.Sprintf(
		"select %q cannot be applied: %s. The result looks like %s", tool.Shorten(expression, 200), tool.Shorten(err.Error(), 300), Shape(value))}
}

// Shape returns a short description of a value: its keys and types.
func Shape(value json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return "text"
	}
	var b strings.Builder
	shape(&b, v, 0)
	return tool.Shorten(b.String(), maxShape)
}

func shape(b *strings.Builder, v any, depth int) {
	switch v := v.(type) {
	case map[string]any:
		if depth == 5 || b.Len() > maxShape {
			b.WriteString("{…}")
			return
		}
		b.WriteByte('{')
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteString(", ")
			}
			if i == 20 || b.Len() > maxShape {
				fmt.Fprintf(b, "… +%d", len(v)-i)
				break
			}
			b.WriteString(tool.Shorten(tool.OneLine(k), 40) + ": ")
			shape(b, v[k], depth+1)
		}
		b.WriteByte('}')
	case []any:
		if len(v) == 0 {
			b.WriteString("[]")
			return
		}
		b.WriteByte('[')
		shape(b, v[0], depth+1)
		if len(v) > 1 {
			fmt.Fprintf(b, ", … %d in all", len(v))
		}
		b.WriteByte(']')
	case string:
		b.WriteString("string")
	case json.Number:
		b.WriteString("number")
	case bool:
		b.WriteString("boolean")
	default:
		b.WriteString("null")
	}
}
