// Package docs embeds the documents that the program prints.
package docs

import _ "embed"

// ConfigSchema is the JSON Schema of the configuration file. A test of
// internal/config generates it from the structs that the loader fills.
//
//go:embed junctor.schema.json
var ConfigSchema []byte
