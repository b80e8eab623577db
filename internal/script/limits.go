package script

import (
	"fmt"
	"time"
)

// Limits bound one run. A zero value means the default.
type Limits struct {
	CPU      time.Duration // of the program, without its calls
	Wall     time.Duration // of the run, without pauses
	Memory   int           // bytes of the program's memory
	Calls    int           // of the host's functions
	Parallel int           // calls at a time; others wait for their turn
	Output   int           // bytes of console.log output
	Source   int           // bytes of the program
	Value    int           // bytes of the returned value as JSON
}

// DefaultLimits returns the limits that apply where none are set.
func DefaultLimits() Limits {
	return Limits{
		CPU: 10 * time.Second, Wall: 5 * time.Minute, Memory: 64 << 20, Calls: 200, Parallel: 8,
		Output: 32 << 10, Source: 256 << 10, Value: 8 << 20,
	}
}

// withDefaults returns l with defaults in place of zero values.
func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	return Limits{
		CPU: orDefault(l.CPU, d.CPU), Wall: orDefault(l.Wall, d.Wall), Memory: orDefault(l.Memory, d.Memory),
		Calls: orDefault(l.Calls, d.Calls), Parallel: orDefault(l.Parallel, d.Parallel), Output: orDefault(l.Output, d.Output),
		Source: orDefault(l.Source, d.Source), Value: orDefault(l.Value, d.Value),
	}
}

func orDefault[N int | time.Duration](n, base N) N {
	if n <= 0 {
		return base
	}
	return n
}

// Code is the reason why a program ended without a value.
type Code string

// The codes. A program cannot catch the errors of limits.
const (
	SyntaxError  Code = "SCRIPT_SYNTAX_ERROR"
	Thrown       Code = "SCRIPT_ERROR" // the program threw, and nothing caught it
	CPULimit     Code = "SCRIPT_CPU_LIMIT"
	TimeLimit    Code = "SCRIPT_TIME_LIMIT"
	MemoryLimit  Code = "SCRIPT_MEMORY_LIMIT"
	CallLimit    Code = "SCRIPT_CALL_LIMIT"
	SourceLimit  Code = "SCRIPT_TOO_LARGE"
	ValueLimit   Code = "SCRIPT_RESULT_TOO_LARGE"
	NeverSettled Code = "SCRIPT_NEVER_SETTLES"
	Canceled     Code = "SCRIPT_CANCELED"
	Failed       Code = "SCRIPT_ENGINE_FAILED"
)

// Error describes why a program ended without a value.
type Error struct {
	Code    Code
	Message string
	Cause   string // the code of the exception that was thrown, if it has one
	Stack   string // where it was thrown
	Err     error  // for the log
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func limitError(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (l Limits) cpuError() *Error {
	return limitError(CPULimit, "the script used %s of CPU time, its limit; let it do less work between calls, or in several scripts with store.set", l.CPU)
}

func (l Limits) wallError() *Error {
	return limitError(TimeLimit, "the script took longer than %s, its limit; make fewer calls in one script and pass results on with store.set", l.Wall)
}

func (l Limits) memoryError() *Error {
	return limitError(MemoryLimit, "the script needs more than its %d MB of memory; keep less at a time", l.Memory>>20)
}

func (l Limits) callError() *Error {
	return limitError(CallLimit, "the script made %d calls, its limit; continue in another script, with store.set and store.get", l.Calls)
}
