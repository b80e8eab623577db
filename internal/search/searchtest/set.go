// Package searchtest measures the quality of rankings of tools.
//
// It reads labelled sets (tools.jsonl and queries.jsonl in one folder) and
// computes recall, MRR and nDCG of any ranking. It is only for tests and the
// evaluation program.
package searchtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"junctor/internal/search"
	"junctor/internal/tool"
)

// Set is a labelled set: tools, and queries with the relevant tools.
type Set struct {
	Name    string
	Docs    []search.Doc
	Queries []Query
}

// Query is a text with the needs that it expresses.
type Query struct {
	ID    string
	Text  string
	Kind  string        // request, paraphrase, keyword, agent, typo, multi
	Needs [][]tool.Name // any tool of one list satisfies the need
}

// Load reads the set in a folder.
func Load(folder string) (*Set, error) {
	set := &Set{Name: folder}
	known := make(map[tool.Name]bool)
	err := lines(filepath.Join(folder, "tools.jsonl"), func(line []byte) error {
		var t struct {
			Server, Tool, Description string
			InputSchema               json.RawMessage
		}
		if err := json.Unmarshal(line, &t); err != nil {
			return err
		}
		name := tool.Name{Server: t.Server, Tool: t.Tool}
		known[name] = true
		set.Docs = append(set.Docs, search.Doc{Name: name, Description: t.Description, InputSchema: t.InputSchema})
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = lines(filepath.Join(folder, "queries.jsonl"), func(line []byte) error {
		var q struct {
			ID, Query, Kind string
			Relevant        []struct{ Server, Tool, Group string }
		}
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		query := Query{ID: q.ID, Text: q.Query, Kind: q.Kind}
		group := make(map[string]int)
		for _, r := range q.Relevant {
			name := tool.Name{Server: r.Server, Tool: r.Tool}
			if !known[name] {
				return fmt.Errorf("query %s: no tool %s", q.ID, name)
			}
			at, ok := group[r.Group]
			if !ok || r.Group == "" {
				at = len(query.Needs)
				query.Needs = append(query.Needs, nil)
				group[r.Group] = at
			}
			query.Needs[at] = append(query.Needs[at], name)
		}
		if len(query.Needs) == 0 {
			return fmt.Errorf("query %s asks for nothing", q.ID)
		}
		set.Queries = append(set.Queries, query)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return set, nil
}

// lines calls each for every line of a file that is not empty.
func lines(path string, each func([]byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 16<<20)
	for n := 1; scanner.Scan(); n++ {
		if len(scanner.Bytes()) == 0 {
			continue
		}
		if err := each(scanner.Bytes()); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	return scanner.Err()
}

// Fill puts the tools of a set into an index, upstream by upstream.
func (s *Set) Fill(ix *search.Index) {
	byServer := make(map[string][]search.Doc)
	for _, d := range s.Docs {
		byServer[d.Name.Server] = append(byServer[d.Name.Server], d)
	}
	for server, docs := range byServer {
		ix.Put(server, docs)
	}
}
