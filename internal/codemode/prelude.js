// What a script sees beside JavaScript: tools and store.
(() => {
	const { call, sync } = globalThis.__host
	const own = {
		call: (name, args) => call("call", { name, arguments: args ?? {} }),
		search: (query, limit) => call("search", typeof query === "string" ? { query, limit } : query),
		describe: (...names) => call("describe", { names: names.flat() }),
	}
	const server = (name) =>
		new Proxy({}, { get: (_, tool) => (typeof tool === "symbol" || tool === "then" ? undefined : (args) => own.call(name + ":" + tool, args)) })
	globalThis.tools = new Proxy(own, {
		get: (_, name) => (typeof name === "symbol" || name === "then" ? undefined : Object.hasOwn(own, name) ? own[name] : server(name)),
		set: () => false,
	})
	globalThis.store = {
		get: (key) => sync("get", { key: String(key) }),
		set: (key, value) => void sync("set", { key: String(key), value }),
		delete: (key) => void sync("delete", { key: String(key) }),
		keys: () => sync("keys", {}),
	}
})()
