package script

import (
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

var (
	// What make builds in engine/ from npm packages. Without Node.js it is
	// missing from the binary.
	//go:embed all:engine/dist
	built embed.FS
	//go:embed prelude.js
	prelude string
)

const (
	folder     = "engine/dist/" // in built
	moduleFile = "quickjs.wasm.gz"
)

// ErrNotBuilt is returned for every program if the engine is missing from this
// binary.
var ErrNotBuilt = errors.New("this binary was built without the script engine; install Node.js 20 or later and run make build")

// stackSize is half of the stack that the module was linked with: the rest is
// for functions that do not check it.
const stackSize = 512 << 10

// totalMemory bounds the memory of all programs of an Engine together.
const totalMemory = 512 << 20

// Engine runs programs. It is safe for concurrent use.
type Engine struct {
	prelude string
	memory  memoryPool

	compile  sync.Once
	runtime  wazero.Runtime
	module   wazero.CompiledModule
	programs *image // for running programs
	err      error

	strip    sync.Once
	stripper *image // for removing types
	stripErr error
}

// New returns an Engine whose programs see what the prelude defines. The
// prelude is JavaScript that runs once, before the memory image is taken; it
// finds the functions __host.call and __host.sync and must not keep values that
// differ between programs. New starts nothing: the engine is compiled when it
// is first used.
func New(prelude string) *Engine {
	return &Engine{prelude: prelude, memory: memoryPool{limit: totalMemory}}
}

// Warm compiles the engine, so that the first program need not wait for it.
func (e *Engine) Warm() error {
	e.compile.Do(func() { e.err = e.load() })
	return e.err
}

// Close releases the engine. No program may run.
func (e *Engine) Close() error {
	if e.runtime == nil {
		return nil
	}
	return e.runtime.Close(context.Background())
}

func (e *Engine) load() error {
	ctx := context.Background()
	code, err := unpack(moduleFile)
	if err != nil {
		return err
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCloseOnContextDone(true))
	if e.module, err = e.runtime.CompileModule(ctx, code); err != nil {
		return fmt.Errorf("compile the script engine: %w", err)
	}
	if err := imports(ctx, e.runtime); err != nil {
		return err
	}
	e.programs, err = e.image(prelude, e.prelude+"\n;delete globalThis.__host")
	return err
}

// loadStripper creates the image of the program that removes types.
func (e *Engine) loadStripper() error {
	e.strip.Do(func() {
		code, err := unpack("sucrase.js.gz")
		if err == nil {
			e.stripper, err = e.image(string(code) + "\n;globalThis.__strip")
		}
		e.stripErr = err
	})
	return e.stripErr
}

// Built reports whether the engine is part of this binary.
func Built() bool {
	_, err := fs.Stat(built, folder+moduleFile)
	return err == nil
}

func unpack(name string) ([]byte, error) {
	packed, err := built.ReadFile(folder + name)
	if err != nil {
		return nil, ErrNotBuilt
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack the script engine: %w", err)
	}
	return io.ReadAll(r)
}

// image is the memory of an instance in which scripts have run, without the
// parts that are zero, and the value of the first of these scripts.
type image struct {
	size   uint32
	chunks []chunk
	value  uint32
	idle   chan *instance
}

// Limits of the pool of idle instances: their number, and the bytes by which
// the memory of one may exceed the image.
const (
	maxIdle   = 8
	maxGrowth = 1 << 20
)

type chunk struct {
	offset uint32
	bytes  []byte
}

const chunkSize = 4096

// image returns the memory of an instance in which the scripts have run.
func (e *Engine) image(scripts ...string) (*image, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	r := &run{ctx: ctx, cancel: cancel, limits: Limits{Memory: 64 << 20}.withDefaults()}
	in, err := e.instantiate(r, 0)
	if err != nil {
		return nil, err
	}
	defer in.close()
	in.call("_initialize")
	if in.call("qjs_init") != 0 {
		return nil, errors.New("the script engine does not start")
	}
	in.call("qjs_set_max_stack_size", stackSize)
	in.setGlobalFunction("__host")
	im := &image{idle: make(chan *instance, maxIdle)}
	for i, s := range scripts {
		value := in.eval(s, "prelude.js")
		if in.err != nil {
			return nil, fmt.Errorf("prepare the script engine: %w", in.err)
		}
		if in.call("qjs_is_exception", uint64(value)) != 0 {
			return nil, fmt.Errorf("prepare the script engine: %s", in.exception())
		}
		if i == 0 {
			im.value = value
		}
	}
	if in.err != nil {
		return nil, fmt.Errorf("prepare the script engine: %w", in.err)
	}
	memory := in.module.Memory()
	im.size = memory.Size()
	all, _ := memory.Read(0, im.size)
	zero := make([]byte, chunkSize)
	for at := 0; at < len(all); at += chunkSize {
		if part := all[at:min(at+chunkSize, len(all))]; !bytes.Equal(part, zero[:len(part)]) {
			im.add(uint32(at), part)
		}
	}
	return im, nil
}

func (im *image) add(at uint32, part []byte) {
	if n := len(im.chunks); n > 0 && im.chunks[n-1].offset+uint32(len(im.chunks[n-1].bytes)) == at {
		im.chunks[n-1].bytes = append(im.chunks[n-1].bytes, part...)
		return
	}
	im.chunks = append(im.chunks, chunk{at, bytes.Clone(part)})
}

// instantiate returns a new instance of the engine for a run.
func (e *Engine) instantiate(r *run, size uint32) (*instance, error) {
	memory := &linearMemory{pool: &e.memory, first: uint64(size)}
	memory.serve(r)
	ctx := experimental.WithMemoryAllocator(context.Background(), memory)
	module, err := e.runtime.InstantiateModule(ctx, e.module, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		if cause := context.Cause(r.ctx); cause != nil {
			return nil, cause
		}
		return nil, fmt.Errorf("start the script engine: %w", err)
	}
	in := &instance{module: module, memory: memory, functions: map[string]api.Function{}}
	in.serve(r)
	return in, nil
}

// restore returns an instance with the memory of the image. If it ran another
// program before, its memory was cleared.
func (e *Engine) restore(r *run, im *image) (*instance, error) {
	in, err := e.idleInstance(r, im)
	if in == nil && err == nil {
		in, err = e.instantiate(r, im.size)
	}
	if err != nil {
		return nil, err
	}
	memory := in.module.Memory()
	if more := int64(im.size) - int64(memory.Size()); more > 0 {
		if _, ok := memory.Grow(uint32(more >> 16)); !ok {
			in.close()
			return nil, context.Cause(r.ctx)
		}
	}
	for _, c := range im.chunks {
		memory.Write(c.offset, c.bytes)
	}
	return in, nil
}

// idleInstance returns a pooled instance with cleared memory, or nil if there
// is none.
func (e *Engine) idleInstance(r *run, im *image) (*instance, error) {
	select {
	case in := <-im.idle:
		if err := e.memory.take(r.owner, int64(cap(in.memory.buffer))); err != nil {
			in.memory.buffer = nil // so that Free does not release it
			in.close()
			r.cancel(err)
			return nil, context.Cause(r.ctx)
		}
		in.serve(r)
		clear(in.memory.buffer)
		return in, nil
	default:
		return nil, nil
	}
}

// release returns an instance to the pool if its program ended normally and its
// memory has not grown too much, and closes it otherwise.
func (e *Engine) release(in *instance, im *image) {
	if in.err != nil || in.module.IsClosed() || in.module.Memory().Size() > im.size+maxGrowth {
		in.close()
		return
	}
	in.memory.serve(nil)
	in.ctx = nil
	owner, size := in.memory.owner, int64(cap(in.memory.buffer)) // before another run has it
	select {
	case im.idle <- in:
		e.memory.release(owner, size)
	default:
		in.close()
	}
}
