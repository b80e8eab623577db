package script

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// runKey is the context key of the run of an instance.
type runKey struct{}

const errnoBadFile = 8 // of WASI

// imports defines the functions that the engine imports: the clock, random
// numbers, host calls, and file functions that always fail.
func imports(ctx context.Context, rt wazero.Runtime) error {
	const i32, i64 = api.ValueTypeI32, api.ValueTypeI64
	modules := map[string]wazero.HostModuleBuilder{
		"env": rt.NewHostModuleBuilder("env"), "wasi_snapshot_preview1": rt.NewHostModuleBuilder("wasi_snapshot_preview1"),
	}
	define := func(module, name string, params, results []api.ValueType, f func(ctx context.Context, m api.Module, stack []uint64)) {
		modules[module].NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(f), params, results).Export(name)
	}
	returning := func(n uint64) func(context.Context, api.Module, []uint64) {
		return func(_ context.Context, _ api.Module, stack []uint64) { stack[0] = n }
	}
	one := []api.ValueType{i32}
	define("env", "host_get_timezone_offset", []api.ValueType{i32, i32}, one, returning(0)) // UTC
	define("env", "host_interrupt", nil, one, returning(0))
	define("env", "host_promise_rejection", []api.ValueType{i32, i32, i32}, nil, func(context.Context, api.Module, []uint64) {})
	define("env", "host_module_normalize", []api.ValueType{i32, i32}, one, returning(0))
	define("env", "host_module_load", []api.ValueType{i32, i32}, one, returning(0))
	define("env", "host_call", []api.ValueType{i32, i32, i32, i32, i32}, one, hostCall)
	const wasi = "wasi_snapshot_preview1"
	define(wasi, "fd_close", one, one, returning(errnoBadFile))
	define(wasi, "fd_fdstat_get", []api.ValueType{i32, i32}, one, returning(errnoBadFile))
	define(wasi, "fd_seek", []api.ValueType{i32, i64, i32, i32}, one, returning(errnoBadFile))
	define(wasi, "fd_write", []api.ValueType{i32, i32, i32, i32}, one, returning(errnoBadFile))
	define(wasi, "clock_time_get", []api.ValueType{i32, i64, i32}, one, func(_ context.Context, m api.Module, stack []uint64) {
		m.Memory().WriteUint64Le(uint32(stack[2]), uint64(time.Now().UnixNano()))
		stack[0] = 0
	})
	define(wasi, "random_get", []api.ValueType{i32, i32}, one, func(_ context.Context, m api.Module, stack []uint64) {
		if b, ok := m.Memory().Read(uint32(stack[0]), uint32(stack[1])); ok {
			_, _ = rand.Read(b) // never fails
		}
		stack[0] = 0
	})
	for name, b := range modules {
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("define %s for the script engine: %w", name, err)
		}
	}
	return nil
}

// hostCall executes a program's call of __host. Its arguments are the name of
// an operation and up to three other strings; its result is a string.
func hostCall(ctx context.Context, m api.Module, stack []uint64) {
	r, _ := ctx.Value(runKey{}).(*run)
	count, argv := min(uint32(stack[3]), 4), uint32(stack[4])
	stack[0] = 0
	if r == nil || r.instance == nil {
		return
	}
	in := r.instance
	var args [4]string
	for i := range count {
		value, ok := m.Memory().ReadUint32Le(argv + 4*i)
		if !ok {
			return
		}
		text, whole := in.read(value, r.limits.Memory)
		if !whole {
			r.cancel(r.limits.memoryError())
			return
		}
		args[i] = text
	}
	out := r.operation(args)
	at := in.callNested("wasm_malloc", uint64(len(out)+1))
	if in.err != nil || at == 0 || !m.Memory().WriteString(at, out) {
		return
	}
	stack[0] = uint64(in.callNested("qjs_new_string", uint64(at), uint64(len(out))))
	in.callNested("wasm_free", uint64(at))
}
