package chat

import (
	"encoding/base64"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/tool"
)

// maxAttachments bounds the number of attachments of a message.
const maxAttachments = 20

// maxAttachmentName bounds the name of an attachment, in bytes.
const maxAttachmentName = 200

// imageTypes are the image types that every provider accepts.
var imageTypes = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// attachmentParts returns the attachments as parts of a message. maxBytes
// bounds their total size.
func attachmentParts(list []wire.Attachment, maxBytes int, model llm.Model) ([]llm.Part, error) {
	if len(list) > maxAttachments {
		return nil, &tool.Error{Kind: tool.TooLarge, Msg: fmt.Sprintf("the message has %d attachments; %d are allowed", len(list), maxAttachments)}
	}
	var parts []llm.Part
	total := 0
	for _, a := range list {
		name := tool.Shorten(strings.Join(strings.Fields(a.Name), " "), maxAttachmentName)
		if name == "" {
			return nil, invalid("an attachment has no name")
		}
		data, err := base64.StdEncoding.DecodeString(a.Data)
		if err != nil {
			return nil, invalid(fmt.Sprintf("the data of %s is not base64", name))
		}
		if total += len(data); total > maxBytes {
			return nil, &tool.Error{Kind: tool.TooLarge, Msg: fmt.Sprintf("the attachments have more than %d bytes (chat.maxAttachmentBytes)", maxBytes)}
		}
		kind, _, err := mime.ParseMediaType(a.MIME)
		if err != nil {
			kind = ""
		}
		switch {
		case imageTypes[kind]:
			parts = append(parts, llm.Part{Image: &llm.Image{MIME: kind, Data: data}})
		case kind == llm.MIMEPDF:
			if model != nil && !model.Info().Provider.TakesDocuments() {
				return nil, invalid(fmt.Sprintf("%s does not support PDF documents; attach %s as text, or choose another model", model.Info().ID, name))
			}
			parts = append(parts, llm.Part{File: &llm.File{Name: name, MIME: kind, Size: len(data), Data: data}})
		case utf8.Valid(data) && !strings.ContainsRune(string(data), 0):
			parts = append(parts, llm.Part{File: &llm.File{Name: name, MIME: firstNonEmpty(kind, "text/plain"), Size: len(data), Data: data}})
		default:
			return nil, invalid(fmt.Sprintf("%s (%s) cannot be attached; attach images (PNG, JPEG, GIF, WebP), text or PDF documents", name, tool.Shorten(a.MIME, 60)))
		}
	}
	return parts, nil
}

// withoutData returns the parts of a message for clients: files without their
// content.
func withoutData(parts []llm.Part) []llm.Part {
	out := make([]llm.Part, len(parts))
	for i, p := range parts {
		if p.File != nil {
			file := *p.File
			file.Data = nil
			p.File = &file
		}
		out[i] = p
	}
	return out
}

// attached describes the attachments of a message, without their content.
func attached(parts []llm.Part) []wire.Attachment {
	var out []wire.Attachment
	for _, p := range parts {
		switch {
		case p.Image != nil:
			out = append(out, wire.Attachment{Name: "image", MIME: p.Image.MIME, Size: len(p.Image.Data)})
		case p.File != nil:
			out = append(out, wire.Attachment{Name: p.File.Name, MIME: p.File.MIME, Size: p.File.Size})
		}
	}
	return out
}
