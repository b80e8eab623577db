package mcp

// The protocol versions that Junctor supports, oldest first.
const (
	Version20241105 = "2024-11-05"
	Version20250326 = "2025-03-26"
	Version20250618 = "2025-06-18"
	Version20251125 = "2025-11-25"
	Version20260728 = "2026-07-28"
)

// Stateless reports whether a protocol version belongs to the era without
// handshake and sessions.
func Stateless(version string) bool { return version >= Version20260728 }

// The methods that the gateway itself serves or inspects.
const (
	MethodInitialize                = "initialize"
	MethodInitialized               = "notifications/initialized"
	MethodDiscover                  = "server/discover"
	MethodPing                      = "ping"
	MethodListen                    = "subscriptions/listen"
	MethodSubscriptionsAcknowledged = "notifications/subscriptions/acknowledged"
	MethodSetLevel                  = "logging/setLevel"
	MethodLogMessage                = "notifications/message"
	MethodCancelled                 = "notifications/cancelled"
	MethodProgress                  = "notifications/progress"
	MethodToolsList                 = "tools/list"
	MethodToolsCall                 = "tools/call"
	MethodToolsChanged              = "notifications/tools/list_changed"
	MethodPromptsList               = "prompts/list"
	MethodPromptsGet                = "prompts/get"
	MethodPromptsChanged            = "notifications/prompts/list_changed"
	MethodResourcesList             = "resources/list"
	MethodTemplatesList             = "resources/templates/list"
	MethodResourcesRead             = "resources/read"
	MethodResourcesChanged          = "notifications/resources/list_changed"
	MethodSubscribe                 = "resources/subscribe"
	MethodUnsubscribe               = "resources/unsubscribe"
	MethodResourceUpdated           = "notifications/resources/updated"
	MethodComplete                  = "completion/complete"
	MethodElicit                    = "elicitation/create"
	MethodSample                    = "sampling/createMessage"
	MethodRootsList                 = "roots/list"
	MethodTasks                     = "notifications/tasks"
	MethodTasksStatus               = "notifications/tasks/status" // of the handshake era
	MethodTasksGet                  = "tasks/get"
	MethodTasksUpdate               = "tasks/update"
	MethodTasksCancel               = "tasks/cancel"
	MethodTasksResult               = "tasks/result" // of the handshake era
	MethodTasksList                 = "tasks/list"   // of the handshake era
)

// MayNeedInput reports whether a request of the stateless era may be answered with
// input_required.
func MayNeedInput(method string) bool {
	return method == MethodToolsCall || method == MethodPromptsGet || method == MethodResourcesRead
}

// The extensions that Junctor supports.
const (
	// ExtensionUI is MCP Apps: tools whose results have a user interface.
	ExtensionUI = "io.modelcontextprotocol/ui"
	// ExtensionTasks is the tasks of the stateless era.
	ExtensionTasks = "io.modelcontextprotocol/tasks"
)

// The keys of the stateless era in a request's or a result's _meta.
const (
	MetaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaServerInfo         = "io.modelcontextprotocol/serverInfo"
	MetaLogLevel           = "io.modelcontextprotocol/logLevel"
	MetaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"
)

// MetaRelatedTask is the key in _meta of the task that a message belongs to.
const MetaRelatedTask = "io.modelcontextprotocol/related-task"
