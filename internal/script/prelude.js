// The prelude makes what a program sees from one native function, __host. It
// returns a function that the host calls: with "begin" and the program, and
// with "settle" and the outcome of a call.
(() => {
	const host = globalThis.__host
	const { parse, stringify } = JSON
	const waiting = Object.create(null)
	let last = 0

	// An outcome is "=" and a value, or "!" and an error, both as JSON.
	const read = (outcome) => {
		const text = outcome.slice(1)
		if (outcome[0] === "=") return text === "" ? undefined : parse(text)
		const facts = parse(text)
		const error = new Error(facts.message)
		for (const key of Object.keys(facts)) if (key !== "message") error[key] = facts[key]
		throw error
	}
	const plain = (key, value) => (typeof value === "bigint" ? value.toString() : value)
	const encode = (value) => stringify(value, plain) ?? "null"
	const start = (kind, name, argument) =>
		new Promise((resolve, reject) => {
			const id = ++last
			host(kind, String(id), name, argument)
			waiting[id] = [resolve, reject]
		})
	const show = (value) => {
		if (typeof value === "string") return value
		if (value instanceof Error) return String(value.stack ? value + "\n" + value.stack : value)
		try {
			return stringify(value, plain) ?? String(value)
		} catch {
			return String(value)
		}
	}
	const describe = (e) => {
		const facts = {}
		for (const key of ["name", "message", "code", "stack"]) {
			try {
				if (e !== null && typeof e === "object" && e[key] !== undefined) facts[key] = String(e[key]).slice(0, 4096)
			} catch {}
		}
		if (facts.message === undefined) {
			try {
				facts.message = show(e).slice(0, 4096)
			} catch {
				facts.message = "an object that cannot be shown"
			}
		}
		return stringify(facts)
	}
	const log = (...values) => void host("log", values.map(show).join(" "))
	globalThis.console = { log, info: log, warn: log, error: log, debug: log }
	globalThis.sleep = (ms) => start("sleep", "", String(Number(ms) || 0))
	Math.random = () => Number(host("random"))
	// For the host's own prelude, which removes them.
	globalThis.__host = {
		call: (name, argument) => start("call", name, encode(argument ?? null)),
		sync: (name, argument) => read(host("sync", name, encode(argument ?? null))),
	}

	return async (what, first, outcome) => {
		if (what === "settle") {
			const [resolve, reject] = waiting[first]
			delete waiting[first]
			try {
				resolve(read(outcome))
			} catch (e) {
				reject(e)
			}
			return
		}
		try {
			host("done", encode(await first()))
		} catch (e) {
			host("fail", describe(e))
		}
	}
})()
