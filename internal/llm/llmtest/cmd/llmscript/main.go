// Command llmscript serves a scripted model to programs in other languages.
//
//	llmscript -script file.json -addr 127.0.0.1:0
//
// It prints the base URL on the first line and serves until it is interrupted
// or, with -stdin, until its standard input is closed, so that it exits if the
// test that started it dies. GET /llmscript/requests returns the requests
// received so far.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"junctor/internal/llm/llmtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "llmscript:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	flags := flag.NewFlagSet("llmscript", flag.ContinueOnError)
	file := flags.String("script", "", "file with the script, JSON; without one every message is echoed")
	addr := flags.String("addr", "127.0.0.1:0", "address to listen on")
	untilEOF := flags.Bool("stdin", false, "stop when standard input ends")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var script llmtest.Script
	if *file != "" {
		data, err := os.ReadFile(*file)
		if err != nil {
			return err
		}
		if script, err = llmtest.ParseScript(data); err != nil {
			return err
		}
	}
	model := llmtest.New(script)
	mux := http.NewServeMux()
	mux.Handle("/", model)
	mux.HandleFunc("GET /llmscript/requests", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(model.Requests())
	})
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "http://%s\n", ln.Addr())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if *untilEOF {
		go func() {
			io.Copy(io.Discard, stdin)
			cancel()
		}()
	}
	server := &http.Server{Handler: mux}
	go func() {
		<-ctx.Done()
		model.Close()
		server.Close()
	}()
	if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
