package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// shared is one engine for all tests: compiling it takes a while with the race
// detector.
var shared = New(`globalThis.host = __host`)

// echo returns the argument of each call.
var echo = Host{
	Call: func(_ context.Context, name string, argument json.RawMessage) (json.RawMessage, error) {
		if name == "fail" {
			return nil, &Exception{Code: "NOPE", Message: "it failed", Details: map[string]int{"n": 1}}
		}
		return argument, nil
	},
	Sync: func(name string, argument json.RawMessage) (json.RawMessage, error) {
		if name == "fail" {
			return nil, errors.New("no")
		}
		return argument, nil
	},
}

func runScript(t *testing.T, source string) (Outcome, error) {
	t.Helper()
	return shared.Run(t.Context(), Program{Source: source, Host: echo})
}

func TestProgramsReturnTheirValue(t *testing.T) {
	for name, tt := range map[string]struct{ source, want string }{
		"nothing":              {``, `null`},
		"a number":             {`return 1 + 2`, `3`},
		"unicode":              {`return "ä😀\u0000".length + [..."😀é"].length`, `6`},
		"text as it is":        {`return "ä😀\u0000\ud800"`, `"ä😀\u0000\ud800"`},
		"big integers":         {`return (2n ** 70n).toString() + typeof 1n`, `"1180591620717411303424bigint"`},
		"a big integer":        {`return {n: 2n ** 70n}`, `{"n":"1180591620717411303424"}`},
		"types":                {"interface A { n: number }\nconst f = (a: A): number => a.n as number\nreturn f({n: 4})!", `4`},
		"generics":             {`const id = <T>(x: T) => x; return id<number>(7)`, `7`},
		"an enum":              {`enum E { A = 3, B }; return E.B`, `4`},
		"comparisons":          {`const a = 1, b = 2; return a < b && b > (a)`, `true`},
		"a call":               {`return await host.call("x", {a: [1]})`, `{"a":[1]}`},
		"calls in parallel":    {`return await Promise.all([1, 2, 3].map(n => host.call("x", n)))`, `[1,2,3]`},
		"a sync call":          {`return host.sync("x", "v")`, `"v"`},
		"a caught error":       {`try { await host.call("fail") } catch (e) { return [e.code, e.message, e.details.n, e instanceof Error] }`, `["NOPE","it failed",1,true]`},
		"a sync error":         {`try { host.sync("fail") } catch (e) { return e.message }`, `"no"`},
		"sleep":                {`await sleep(1); return "awake"`, `"awake"`},
		"random numbers":       {`const r = Math.random(); return r >= 0 && r < 1`, `true`},
		"dates":                {`return new Date(0).toISOString() + new Date(0).getHours()`, `"1970-01-01T00:00:00.000Z0"`},
		"async generators":     {`async function* g() { yield 1; yield await host.call("x", 2) } const out = []; for await (const v of g()) out.push(v); return out`, `[1,2]`},
		"settled":              {`return (await Promise.allSettled([host.call("fail"), 1])).map(r => r.status)`, `["rejected","fulfilled"]`},
		"a regular expression": {`return "2026-11-16".replace(/(?<y>\d+)-(\d+)/u, "$2/$<y>")`, `"11/2026-16"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := runScript(t, tt.source)
			if err != nil || string(got.Value) != tt.want {
				t.Errorf("%s, %v; want %s", got.Value, err, tt.want)
			}
		})
	}
}

func TestProgramsReachNothing(t *testing.T) {
	got, err := runScript(t, `return ["require", "process", "fetch", "XMLHttpRequest", "setTimeout", "std", "os", "Deno", "WebAssembly", "Worker", "importScripts", "__host", "__strip"].filter(n => n in globalThis)`)
	if err != nil || string(got.Value) != `[]` {
		t.Errorf("%s, %v", got.Value, err)
	}
	for _, source := range []string{`return await import("os")`, `return await import("file:///etc/passwd")`} {
		if got, err := runScript(t, source); err == nil {
			t.Errorf("%s: %s", source, got.Value)
		}
	}
}

func TestErrorsSayWhere(t *testing.T) {
	for name, tt := range map[string]struct {
		source         string
		code           Code
		message, stack string
	}{
		"thrown":          {"let a = 1\n\nthrow new TypeError('no ' + a)", Thrown, "TypeError: no 1", ":3:"},
		"thrown in types": {"let a: number = 1\n\nnull.x", Thrown, "TypeError: cannot read property 'x' of null", ":3:"},
		"not an error":    {"throw {a: 1}", Thrown, `{"a":1}`, ""},
		"a tool's":        {"await host.call('fail')", Thrown, "it failed", ""},
		"syntax":          {"let a = 1\nlet b = = 2", SyntaxError, "the script cannot be parsed: Unexpected token at line 2, column 9", ""},
		"syntax, line 1":  {"let = = 2", SyntaxError, "the script cannot be parsed: Unexpected token at line 1, column 5", ""},
		"circular":        {"const a = {}; a.a = a; return a", Thrown, "TypeError: circular reference", ""},
		"never settled":   {"await new Promise(() => {})", NeverSettled, "the script awaits a promise that never settles", ""},
		"too long":        {"//" + strings.Repeat("x", 256<<10), SourceLimit, "the script has 262146 bytes, more than 262144", ""},
		"hostile thrown":  {`throw {get message() { throw 1 }, toJSON() { throw 2 }, toString() { throw 3 }}`, Thrown, "an object that cannot be shown", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := runScript(t, tt.source)
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Code != tt.code || e.Message != tt.message || !strings.Contains(e.Stack, tt.stack) {
				t.Errorf("%#v", err)
			}
		})
	}
}

func TestLogIsBounded(t *testing.T) {
	got, err := shared.Run(t.Context(), Program{Source: `console.log("a", 1, {b: 2n}); console.error("x".repeat(100)); console.log("end")`, Limits: Limits{Output: 30}})
	if err != nil || strings.Join(got.Log, "|") != `a 1 {"b":"2"}|end` || got.Dropped != 1 {
		t.Errorf("%q, %d, %v", got.Log, got.Dropped, err)
	}
}

func TestCallsAreBounded(t *testing.T) {
	var now, most atomic.Int32
	host := Host{Call: func(ctx context.Context, _ string, argument json.RawMessage) (json.RawMessage, error) {
		n := now.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		defer now.Add(-1)
		time.Sleep(time.Millisecond)
		return argument, nil
	}}
	source := `const out = await Promise.all(Array.from({length: 20}, (_, i) => host.call("x", i))); return out.length`
	got, err := shared.Run(t.Context(), Program{Source: source, Host: host, Limits: Limits{Parallel: 3, Calls: 20}})
	if err != nil || string(got.Value) != "20" || most.Load() > 3 || got.Calls != 20 {
		t.Errorf("%s, %v, %d at a time, %d calls", got.Value, err, most.Load(), got.Calls)
	}
	_, err = shared.Run(t.Context(), Program{Source: `for (;;) try { await host.call("x") } catch {}`, Host: host, Limits: Limits{Calls: 5}})
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != CallLimit {
		t.Errorf("%v", err)
	}
}

// TestCallsAreNotAbandoned checks that a call that the program does not await
// still runs to completion.
func TestCallsAreNotAbandoned(t *testing.T) {
	var ended atomic.Bool
	host := Host{Call: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		time.Sleep(5 * time.Millisecond)
		ended.Store(true)
		return nil, nil
	}}
	got, err := shared.Run(t.Context(), Program{Source: `host.call("x"); return 1`, Host: host})
	if err != nil || string(got.Value) != "1" || !ended.Load() {
		t.Errorf("%s, %v, ended %t", got.Value, err, ended.Load())
	}
}

func TestCancelEndsARun(t *testing.T) {
	for name, source := range map[string]string{"in a call": `await host.call("x")`, "in a loop": `host.sync("x"); for (;;);`, "asleep": `host.sync("x"); await sleep(1e9)`} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			host := Host{
				Call: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
					cancel()
					<-ctx.Done()
					return nil, ctx.Err()
				},
				Sync: func(string, json.RawMessage) (json.RawMessage, error) { cancel(); return nil, nil },
			}
			_, err := shared.Run(ctx, Program{Source: source, Host: host})
			if e, ok := errors.AsType[*Error](err); !ok || e.Code != Canceled {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestPausesDoNotCount(t *testing.T) {
	if err := shared.Warm(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWallClock(time.Minute, func() { t.Error("the time is up") })
		time.Sleep(30 * time.Second)
		w.pause()
		time.Sleep(time.Hour)
		w.pause()
		w.resume()
		time.Sleep(time.Hour)
		w.resume()
		time.Sleep(29 * time.Second)
		w.stop()
		time.Sleep(time.Hour)
	})
	synctest.Test(t, func(t *testing.T) {
		up := false
		w := newWallClock(time.Minute, func() { up = true })
		w.pause()
		time.Sleep(time.Hour)
		w.resume()
		time.Sleep(61 * time.Second)
		if synctest.Wait(); !up {
			t.Error("the time is not up")
		}
	})
}

func TestManyProgramsAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			got, err := shared.Run(t.Context(), Program{Host: echo, Source: fmt.Sprintf(
				`globalThis.mine = %d; const all = await Promise.all(Array.from({length: 10}, (_, k) => host.call("x", {i: mine, k}))); return all.reduce((s, r) => s + r.i * 100 + r.k, 0)`, i)})
			if want := fmt.Sprint(i*1000 + 45); err != nil || string(got.Value) != want {
				t.Errorf("%s, %v; want %s", got.Value, err, want)
			}
		})
	}
	wg.Wait()
	if used := shared.memory.inUse(); used != 0 {
		t.Errorf("%d bytes are still in use", used)
	}
}

func BenchmarkEmptyScript(b *testing.B) {
	if err := shared.Warm(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := shared.Run(b.Context(), Program{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTypedScript(b *testing.B) {
	source := "interface A { n: number }\nconst f = (a: A): number => a.n as number\nreturn f({n: 4})!"
	if _, err := shared.Run(b.Context(), Program{Source: source}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := shared.Run(b.Context(), Program{Source: source}); err != nil {
			b.Fatal(err)
		}
	}
}
