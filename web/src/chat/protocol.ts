// The messages of /ws; docs/chat.md has a schema for each.

export interface Outgoing {
  type: string;
  seq: number;
  payload: Record<string, unknown>;
}

export interface ServerDown {
  server: string;
  state: string;
  reason?: string;
}

export interface Usage {
  input?: number;
  output?: number;
  [key: string]: number | undefined;
}

export interface HistoryPart {
  text?: string;
  reasoning?: string;
  image?: { mime: string; data: string };
  file?: { name: string; mime: string; size: number };
  call?: { id: string; name: string; tool?: string; arguments?: unknown; malformed?: string };
  result?: { callId: string; name: string; content: unknown; isError?: boolean; tookMs?: number };
}

export interface HistoryMessage {
  id: string;
  seq: number;
  role: 'user' | 'assistant' | 'tool';
  time: string;
  parts: HistoryPart[] | null;
  model?: string;
  notice?: string;
  /** The ids of all the messages at this place, one for each branch. */
  siblings?: string[];
}

/** Attachment is a file of a message, its data in base64. */
export interface Attachment {
  name: string;
  mimeType: string;
  data: string;
  size: number;
}

/** Preferences are what the user chose for one conversation. */
export interface Preferences {
  systemPrompt?: string;
  temperature?: number;
  /** Empty: all. */
  servers?: string[];
}

export type Scope = 'once' | 'session' | 'always';

export type Answer = 'accept' | 'decline' | 'cancel';
