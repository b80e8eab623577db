package script

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// hostile contains programs that try to exceed their limits, and the codes with
// which they may end; "" means that they return a value.
var hostile = map[string]struct {
	source string
	ends   []Code
}{
	"endless loop":               {`for (;;);`, []Code{CPULimit}},
	"endless loop in try":        {`for (;;) { try { for (;;); } finally { continue } }`, []Code{CPULimit}},
	"endless microtasks":         {`const f = () => Promise.resolve().then(f); await f()`, []Code{CPULimit, MemoryLimit}},
	"endless await":              {`for (;;) await null`, []Code{CPULimit}},
	"endless recursion":          {`const f = () => f() + 1; return f()`, []Code{Thrown}},
	"recursion caught":           {`const f = () => { try { f() } catch { f() } }; f()`, []Code{CPULimit}},
	"recursion in a getter":      {`const o = {get a() { return this.a }}; return o.a`, []Code{Thrown}},
	"recursion in a proxy":       {`const p = new Proxy({}, {get: (t, k, r) => r[k]}); return p.x`, []Code{Thrown}},
	"endless array":              {`const a = []; for (;;) a.push({})`, []Code{MemoryLimit, CPULimit}},
	"endless array, caught":      {`const a = []; for (;;) try { for (;;) a.push(new Uint8Array(1e6)) } catch {}`, []Code{MemoryLimit, CPULimit}},
	"endless string":             {`let s = "x"; for (;;) s += s + s`, []Code{MemoryLimit, Thrown}},
	"a string of 1 GB":           {`return "x".repeat(2 ** 30 - 1).length`, []Code{MemoryLimit, Thrown}},
	"a padded string":            {`return "x".padEnd(2 ** 29, "yz").length`, []Code{MemoryLimit, Thrown}},
	"a buffer of 4 GB":           {`return new ArrayBuffer(2 ** 32 - 1).byteLength`, []Code{MemoryLimit, Thrown}},
	"a resizable buffer":         {`const b = new ArrayBuffer(8, {maxByteLength: 2 ** 31 - 1}); b.resize(2 ** 30); return 1`, []Code{MemoryLimit, Thrown}},
	"a sparse array filled":      {`return new Array(2 ** 31).fill(0).length`, []Code{MemoryLimit, CPULimit, Thrown}},
	"a sparse array joined":      {`return new Array(2 ** 31).join("x").length`, []Code{MemoryLimit, CPULimit, Thrown}},
	"a sparse array searched":    {`return Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1)`, []Code{CPULimit}},
	"a regular expression":       {`return /^(a+)+$/.test("a".repeat(40) + "b")`, []Code{CPULimit, MemoryLimit, Thrown}},
	"a look-ahead":               {`return /^(?=(?:a|aa)+$)(?:a|aa)+b/.test("a".repeat(60))`, []Code{CPULimit, MemoryLimit, Thrown}},
	"a replacement":              {`let s = "x"; for (let i = 0; i < 40; i++) s = s.replace(/x/g, "xx"); return s.length`, []Code{CPULimit, MemoryLimit, Thrown}},
	"big integers":               {`let n = 3n; for (;;) n *= n`, []Code{CPULimit, MemoryLimit, Thrown}},
	"a power of big integers":    {`return (3n ** 10000000n).toString().length`, []Code{CPULimit, MemoryLimit, Thrown}},
	"a sort that never agrees":   {`return Array.from({length: 1e6}, (_, i) => i).sort(() => Math.random() - 0.5).length`, []Code{CPULimit, MemoryLimit}},
	"a sort that recurs":         {`const f = (a) => a.sort(() => f(a)); return f([1, 2, 3])`, []Code{Thrown}},
	"deep JSON":                  {`return JSON.parse("[".repeat(1e6) + "]".repeat(1e6)).length`, []Code{Thrown, CPULimit, MemoryLimit}},
	"deep value":                 {`let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a`, []Code{Thrown, CPULimit, MemoryLimit}},
	"toJSON for ever":            {`return {toJSON() { return {a: {toJSON: this.toJSON}} }}`, []Code{Thrown, CPULimit, MemoryLimit}},
	"toJSON loops":               {`return {toJSON() { for (;;); }}`, []Code{CPULimit}},
	"a huge value":               {`const s = "x".repeat(1e6); return Array(9).fill(s)`, []Code{ValueLimit, CPULimit}},
	"a thenable for ever":        {`const t = {then(f) { f(t) }}; await t`, []Code{CPULimit, MemoryLimit}},
	"a prototype attack":         {`Object.prototype.then = function (f) { f(1) }; Array.prototype.map = null; Object.prototype.toJSON = () => "x"; Promise.prototype.then = null; JSON.stringify = () => "}{"; return await host.call("x", {a: 1})`, []Code{"", Thrown, CPULimit}},
	"an attack on the prelude":   {`Object.defineProperty(Object.prototype, "1", {set() { throw 1 }, get() { throw 2 }}); return await host.call("x", 3)`, []Code{"", Thrown}},
	"a constructor's escape":     {`return (() => {}).constructor("return this")().process ?? host.call.constructor("return typeof require")()`, []Code{""}},
	"code that closes its frame": {`}); globalThis.x = 1; (() => {`, []Code{"", SyntaxError, Thrown}},
	"nested code":                {strings.Repeat("(", 100_000), []Code{SyntaxError, CPULimit, MemoryLimit}},
	"nested functions":           {strings.Repeat("()=>{", 50_000), []Code{SyntaxError, CPULimit, MemoryLimit}},
	"nested operators":           {"return " + strings.Repeat("!", 200_000) + "1", []Code{SyntaxError, CPULimit, MemoryLimit}},
	"nested types":               {"let x: " + strings.Repeat("A<", 100_000), []Code{SyntaxError, CPULimit, MemoryLimit}},
	"nested eval":                {`const f = () => eval("f()"); return f()`, []Code{Thrown, CPULimit, MemoryLimit}},
	"eval of long code":          {`return eval("1" + "+1".repeat(1e7))`, []Code{Thrown, CPULimit, MemoryLimit}},
	"a template of itself":       {"const f = () => `${f()}`; return f()", []Code{Thrown, CPULimit}},
	"endless calls":              {`for (;;) await host.call("x")`, []Code{CallLimit}},
	"calls at once":              {`for (;;) host.call("x")`, []Code{CallLimit}},
	"calls with long arguments":  {`const s = "x".repeat(5e6); for (;;) host.call("x", s)`, []Code{CallLimit, MemoryLimit, CPULimit}},
	"sleeps at once":             {`for (;;) sleep(1e9)`, []Code{CallLimit, CPULimit, MemoryLimit}},
	"endless log":                {`for (;;) console.log("x".repeat(1e4))`, []Code{CPULimit}},
	"endless generator":          {`function* g() { for (;;) yield* g() } return [...g()]`, []Code{Thrown, MemoryLimit, CPULimit}},
	"weak references":            {`const r = []; for (;;) r.push(new WeakRef({}), new FinalizationRegistry(() => {}))`, []Code{MemoryLimit, CPULimit}},
	"shared memory":              {`const b = new SharedArrayBuffer(8); Atomics.wait(new Int32Array(b), 0, 0); return 1`, []Code{Thrown, "", CPULimit}},
	"invalid text":               {`return await host.call("x", "\ud800\udfff\u0000" + String.fromCharCode(0xd800))`, []Code{""}},
	"a symbol for an argument":   {`return await host.call(Symbol("x"), Symbol("y"))`, []Code{"", Thrown}},
}

func TestHostileProgramsEnd(t *testing.T) {
	if err := shared.Warm(); err != nil {
		t.Fatal(err)
	}
	limits := Limits{CPU: 20 * time.Millisecond, Memory: 24 << 20, Calls: 50}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for name, tt := range hostile {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			go func() {
				got, err := shared.Run(ctx, Program{Source: tt.source, Host: echo, Limits: limits})
				if err == nil && !json.Valid(got.Value) {
					err = errors.New("an invalid value")
				}
				ended <- err
			}()
			// Other programs run concurrently.
			if got, err := shared.Run(ctx, Program{Source: `return 1 + await host.call("x", 1)`, Host: echo}); err != nil || string(got.Value) != "2" {
				t.Errorf("another program: %s, %v", got.Value, err)
			}
			err := <-ended
			var code Code
			if e, ok := errors.AsType[*Error](err); ok {
				code = e.Code
			}
			ends := append(slices.Clip(tt.ends), CPULimit) // on a slow machine
			if err != nil && code == "" || !slices.Contains(ends, code) {
				t.Errorf("it ended with %q, %v; want one of %q", code, err, tt.ends)
			}
			runtime.ReadMemStats(&after)
			if grown := int64(after.Sys) - int64(before.Sys); grown > 400<<20 {
				t.Errorf("the process has grown by %d MB", grown>>20)
			}
		})
	}
	if used := shared.memory.inUse(); used != 0 {
		t.Errorf("%d bytes are still in use", used)
	}
	t.Logf("the process grew by %d MB", (int64(after.Sys)-int64(before.Sys))>>20)
	for begun := time.Now(); ; { // pooled memory is freed by the second collection
		runtime.GC()
		runtime.ReadMemStats(&after)
		kept := int64(after.HeapAlloc) - int64(before.HeapAlloc)
		if kept <= 32<<20 {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("%d MB are still in use", kept>>20)
		}
	}
}

// TestProgramsShareTheirMemory checks the limit on the memory of all programs
// together.
func TestProgramsShareTheirMemory(t *testing.T) {
	e := withMemory(t, 8<<20)
	_, err := e.Run(t.Context(), Program{Source: `const a = []; for (;;) a.push(new Uint8Array(1e5))`, Host: echo})
	if x, ok := errors.AsType[*Error](err); !ok || x.Code != MemoryLimit || !strings.Contains(x.Message, "together") {
		t.Errorf("%v", err)
	}
	if e.memory.inUse() != 0 {
		t.Error("memory is still in use")
	}
}

// TestOwnersShareMemory checks that the programs of one owner leave memory for
// those of others.
func TestOwnersShareMemory(t *testing.T) {
	p := memoryPool{limit: 512}
	for _, step := range []struct {
		owner string
		n     int64
		ok    bool
	}{
		{"a", 200, true}, {"a", 56, true}, {"a", 1, false}, // half of all
		{"b", 128, true}, {"b", 1, false}, // half of what a leaves
		{"c", 64, true}, {"a", 1, false},
		{"", 64, true}, {"", 1, false}, // the engine itself
	} {
		if err := p.take(step.owner, step.n); (err == nil) != step.ok {
			t.Errorf("%s takes %d of %d: %v, want %t", step.owner, step.n, p.limit-p.inUse(), err, step.ok)
		}
	}
	for owner, n := range map[string]int64{"a": 256, "b": 128, "c": 64, "": 64} {
		p.release(owner, n)
	}
	if p.inUse() != 0 || len(p.owners) != 0 {
		t.Errorf("%d bytes of %v are still in use", p.inUse(), p.owners)
	}
}

// TestOwnerOverItsShare checks that a caller over its share gets an error that
// names the reason, while a program of another caller runs.
func TestOwnerOverItsShare(t *testing.T) {
	e := withMemory(t, 32<<20)
	release := make(chan struct{})
	started := make(chan struct{})
	hold := Host{Sync: echo.Sync, Call: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		close(started)
		<-release
		return json.RawMessage("1"), nil
	}}
	ended := make(chan error, 1)
	go func() {
		_, err := e.Run(t.Context(), Program{Owner: "a", Source: `const a = new Uint8Array(6e6); await host.call("x", 1); return a.length`, Host: hold})
		ended <- err
	}()
	<-started
	_, err := e.Run(t.Context(), Program{Owner: "a", Source: `return new Uint8Array(10e6).length`, Host: echo})
	if x, ok := errors.AsType[*Error](err); !ok || x.Code != MemoryLimit || !strings.Contains(x.Message, "this caller") {
		t.Errorf("the second program of the owner: %v", err)
	}
	if _, err := e.Run(t.Context(), Program{Owner: "b", Source: `return 1`, Host: echo}); err != nil {
		t.Errorf("another's program: %v", err)
	}
	close(release)
	if err := <-ended; err != nil {
		t.Errorf("the first program: %v", err)
	}
}

// withMemory returns an engine with a limit on the memory of all programs.
func withMemory(t *testing.T, limit int64) *Engine {
	t.Helper()
	if err := shared.Warm(); err != nil {
		t.Fatal(err)
	}
	e := New("")
	programs := *shared.programs
	programs.idle = make(chan *instance)
	e.runtime, e.module, e.programs = shared.runtime, shared.module, &programs
	e.compile.Do(func() {})
	e.memory.limit = limit
	return e
}

// inUse returns the number of bytes used by all programs.
func (p *memoryPool) inUse() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}
