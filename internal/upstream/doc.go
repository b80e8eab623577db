// Package upstream holds the connections to MCP servers: it dials them all at
// once, supervises them, brings lost ones back forever, and carries requests.
//
// It promises that a slow, dead or broken server delays and breaks no other;
// that a request to a server that is down is answered at once, with the
// reason, and that the first one after its return is served; and that
// everything which a server sends is bounded.
//
// The package knows neither rules nor callers' rights. What servers offer goes
// to a [Sink]; credentials for remote ones come from an [Authorizer].
package upstream
