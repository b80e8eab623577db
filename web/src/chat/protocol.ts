// The messages of /ws; docs/chat.md has a schema for each.

export interface GatewayMessage {
  type: string;
  seq: number;
  payload: Record<string, unknown>;
}

export interface UnavailableServer {
  server: string;
  state: string;
  reason?: string;
}

export interface Usage {
  input?: number;
  output?: number;
  [key: string]: number | undefined;
}

/** Attachment is a file of a message, its data in base64. */
export interface Attachment {
  name: string;
  mimeType: string;
  data: string;
  size: number;
}

/** MessageLimits are the maximum bytes of text and of attachments of one message. */
export interface MessageLimits {
  messageBytes: number;
  attachmentBytes: number;
}

/** Preferences are the user's settings for one conversation. */
export interface Preferences {
  systemPrompt?: string;
  temperature?: number;
  /** The servers that the chat may use; empty means all. */
  servers?: string[];
  profile?: string;
}

export type AnswerAction = 'accept' | 'decline' | 'cancel';
