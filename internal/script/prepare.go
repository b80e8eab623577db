package script

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const (
	sourceName = "script.ts"
	opening    = "(async () => {"
	closing    = "\n})"
)

// typeArguments matches what is a call with type arguments in TypeScript and
// two comparisons in JavaScript.
var typeArguments = regexp.MustCompile(`<[^;{}()]*>\s*\(`)

// prepare compiles the program and returns it as a function. If the engine
// cannot compile it as JavaScript, or would interpret it differently from
// TypeScript, its types are removed first, without changing line numbers.
func (e *Engine) prepare(r *run, source string) (uint32, error) {
	var err error
	if r.instance, err = e.restore(r, e.programs); err != nil {
		return 0, err
	}
	in := r.instance
	code := opening + source + closing
	if !typeArguments.MatchString(source) {
		r.cpu.enter()
		function := in.eval(code, sourceName)
		failed := in.err != nil || in.call("qjs_is_exception", uint64(function)) != 0
		r.cpu.leave()
		if in.err != nil {
			in.close()
			return 0, in.err
		}
		if !failed {
			return function, nil
		}
		in.exception() // discarded; the type stripper reports the position in TypeScript
	}
	if code, err = e.withoutTypes(r, code); err != nil {
		in.close()
		return 0, err
	}
	r.cpu.enter()
	defer r.cpu.leave()
	function := in.eval(code, sourceName)
	if in.err == nil && in.call("qjs_is_exception", uint64(function)) != 0 {
		value := in.call("qjs_get_exception")
		name := in.write("stack")
		message, _ := in.read(value, 4096)
		stack, _ := in.read(in.call("qjs_get_prop_string", uint64(value), uint64(name)), 4096)
		err = &Error{Code: SyntaxError, Message: message, Stack: position(stack)}
	}
	if in.err != nil {
		err = in.err
	}
	if err != nil {
		in.close()
		return 0, err
	}
	return function, nil
}

// withoutTypes removes the types from code.
func (e *Engine) withoutTypes(r *run, code string) (string, error) {
	if err := e.loadStripper(); err != nil {
		return "", err
	}
	in, err := e.restore(r, e.stripper)
	if err != nil {
		return "", err
	}
	defer e.release(in, e.stripper)
	r.cpu.enter()
	defer r.cpu.leave()
	value := in.apply(e.stripper.value, in.text(code))
	if in.err == nil && in.call("qjs_is_exception", uint64(value)) != 0 {
		return "", syntaxError(in.exception())
	}
	stripped, whole := in.read(value, 2*len(code)+4096)
	if in.err != nil {
		return "", in.err
	}
	if !whole {
		return "", &Error{Code: Failed, Message: "the types of the script cannot be removed"}
	}
	return stripped, nil
}

var place = regexp.MustCompile(`\((\d+):(\d+)\)$`)

// syntaxError converts an error message of the type stripper. It subtracts the
// code before the program from the column.
func syntaxError(message string) *Error {
	_, text, ok := strings.Cut(message, "sucrase: ")
	if !ok {
		text = strings.TrimPrefix(message, "SyntaxError: ")
	}
	if at := place.FindStringSubmatchIndex(text); at != nil {
		line, _ := strconv.Atoi(text[at[2]:at[3]])
		column, _ := strconv.Atoi(text[at[4]:at[5]])
		if line == 1 {
			column = max(column-len(opening), 1)
		}
		text = fmt.Sprintf("%s at line %d, column %d", strings.TrimSpace(text[:at[0]]), line, column)
	}
	return &Error{Code: SyntaxError, Message: "the script cannot be parsed: " + text}
}
