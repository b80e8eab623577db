package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"junctor/internal/httperr"
	"junctor/internal/store"
	"junctor/internal/tool"
)

// ApprovalInfo is a permanent approval of a tool.
type ApprovalInfo struct {
	Tool        string `json:"tool"`
	Fingerprint string `json:"fingerprint"` // of the definition that was approved
	Current     bool   `json:"current"`     // the tool is still defined so
}

// Approvals returns the permanent approvals of the caller.
func (h *Host) Approvals(ctx context.Context, caller tool.Caller) ([]ApprovalInfo, error) {
	subjects, _, err := h.allowed(ctx, caller.ID)
	if err != nil {
		return nil, unavailable(err)
	}
	out := []ApprovalInfo{}
	for _, s := range subjects {
		name, print, _ := strings.Cut(s, " ")
		a := ApprovalInfo{Tool: name, Fingerprint: print}
		if n, err := tool.ParseName(name); err == nil {
			a.Current = h.approvalOf(n) == s
		}
		out = append(out, a)
	}
	return out, nil
}

// RevokeApproval removes the caller's permanent approvals of a tool.
func (h *Host) RevokeApproval(ctx context.Context, caller tool.Caller, name string) error {
	for range 5 { // retry on conflicts with concurrent writers
		subjects, version, err := h.allowed(ctx, caller.ID)
		if err != nil {
			return unavailable(err)
		}
		rest := slices.DeleteFunc(slices.Clone(subjects), func(s string) bool { return s == name || strings.HasPrefix(s, name+" ") })
		if len(rest) == len(subjects) {
			return &tool.Error{Kind: tool.MethodNotFound, Msg: fmt.Sprintf("%s is not approved for always", tool.Shorten(name, 200))}
		}
		data, err := json.Marshal(rest)
		if err != nil {
			return err
		}
		_, err = h.Store.PutValue(ctx, store.Value{Space: approvalSpace, Name: caller.ID, Data: data}, version)
		if err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return unavailable(err)
		}
	}
	return unavailable(store.ErrConflict)
}

func (h *Host) listApprovals(w http.ResponseWriter, r *http.Request) {
	list, err := h.Approvals(r.Context(), tool.CallerFrom(r.Context()))
	if err != nil {
		httperr.Write(w, r, err)
		return
	}
	reply(w, map[string]any{"approvals": list})
}

func (h *Host) revokeApproval(w http.ResponseWriter, r *http.Request) {
	if err := h.RevokeApproval(r.Context(), tool.CallerFrom(r.Context()), r.PathValue("tool")); err != nil {
		httperr.Write(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
