package script

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// instance is one copy of the engine. After the first failure, such as a
// cancelled context, err has the reason and all methods do nothing. Values are
// addresses in its memory. Few of them are freed, because the memory is only
// used for one program.
type instance struct {
	ctx       context.Context
	module    api.Module
	memory    *linearMemory
	functions map[string]api.Function
	err       error
}

func (in *instance) close() { _ = in.module.Close(context.Background()) }

// serve assigns the instance to a run.
func (in *instance) serve(r *run) {
	in.ctx = context.WithValue(r.ctx, runKey{}, r)
	in.memory.serve(r)
}

// call calls a function that the engine exports.
func (in *instance) call(name string, args ...uint64) uint32 {
	f, ok := in.functions[name]
	if !ok {
		f = in.module.ExportedFunction(name)
		in.functions[name] = f
	}
	return in.invoke(f, args)
}

// callNested is like call, for use during a call of the host. It gets a new
// function value, because the stack of the cached one is in use.
func (in *instance) callNested(name string, args ...uint64) uint32 {
	return in.invoke(in.module.ExportedFunction(name), args)
}

func (in *instance) invoke(f api.Function, args []uint64) uint32 {
	if in.err != nil {
		return 0
	}
	if f == nil {
		in.err = errors.New("the script engine lacks a function")
		return 0
	}
	var stack [8]uint64
	copy(stack[:], args)
	if err := f.CallWithStack(in.ctx, stack[:]); err != nil {
		in.err = err
		if cause := context.Cause(in.ctx); cause != nil {
			in.err = cause
		}
		return 0
	}
	return uint32(stack[0])
}

// write copies text into the engine's memory, followed by a zero byte.
func (in *instance) write(text string) uint32 {
	at := in.call("wasm_malloc", uint64(len(text)+1))
	if in.err == nil && (at == 0 || !in.module.Memory().WriteString(at, text) || !in.module.Memory().WriteByte(at+uint32(len(text)), 0)) {
		in.err = errNoMemory
	}
	return at
}

var errNoMemory = errors.New("the script engine has no memory left")

// eval runs a script and returns its value, or an exception.
func (in *instance) eval(code, file string) uint32 {
	source, name := in.write(code), in.write(file)
	value := in.call("qjs_eval", uint64(source), uint64(len(code)), uint64(name), 0)
	in.call("wasm_free", uint64(source))
	in.call("wasm_free", uint64(name))
	return value
}

// text returns a new string value.
func (in *instance) text(s string) uint32 {
	at := in.write(s)
	value := in.call("qjs_new_string", uint64(at), uint64(len(s)))
	in.call("wasm_free", uint64(at))
	return value
}

// apply calls a function value.
func (in *instance) apply(function uint32, args ...uint32) uint32 {
	argv := in.call("wasm_malloc", uint64(4*len(args)+4))
	if in.err == nil && argv == 0 {
		in.err = errNoMemory
	}
	for i, a := range args {
		if in.err == nil {
			in.module.Memory().WriteUint32Le(argv+uint32(4*i), a)
		}
	}
	value := in.call("qjs_call", uint64(function), uint64(in.call("qjs_get_undefined")), uint64(len(args)), uint64(argv))
	in.call("wasm_free", uint64(argv))
	for _, a := range args {
		in.call("qjs_free_value", uint64(a))
	}
	return value
}

// read returns a value as text, truncated to limit bytes, and whether it is
// complete. It may run the program's code if the value is not a string.
func (in *instance) read(value uint32, limit int) (string, bool) {
	length := in.callNested("wasm_malloc", 4)
	if in.err == nil && length == 0 {
		in.err = errNoMemory
	}
	at := in.callNested("qjs_get_string_len", uint64(value), uint64(length))
	if in.err != nil || at == 0 {
		return "", true
	}
	n := uint32(0)
	if b, ok := in.module.Memory().Read(length, 4); ok {
		n = binary.LittleEndian.Uint32(b)
	}
	b, ok := in.module.Memory().Read(at, min(n, uint32(limit)))
	if !ok {
		return "", true
	}
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	in.callNested("qjs_free_cstring", uint64(at))
	in.callNested("wasm_free", uint64(length))
	return s, int(n) <= limit
}

// exception returns the text of the exception that the engine caught last.
func (in *instance) exception() string {
	s, _ := in.read(in.call("qjs_get_exception"), 4096)
	return s
}

// setGlobalFunction defines a global function that calls the host.
func (in *instance) setGlobalFunction(name string) {
	at := in.write(name)
	f := in.call("qjs_new_host_function", uint64(at), uint64(len(name)), 0)
	in.call("qjs_set_prop_string", uint64(in.call("qjs_get_global")), uint64(at), uint64(f))
}

// drain runs the jobs of settled promises until there are none.
func (in *instance) drain() {
	for in.err == nil && in.call("qjs_is_job_pending") != 0 {
		in.call("qjs_execute_pending_job")
	}
}
