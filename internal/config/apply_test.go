package config

import (
	"reflect"
	"slices"
	"testing"

	"junctor/internal/telemetry"
)

// TestEverySettingIsLiveOrRestart checks that every setting is marked live or
// restart.
func TestEverySettingIsLiveOrRestart(t *testing.T) {
	var check func(prefix string, fields []field)
	check = func(prefix string, fields []field) {
		for _, f := range fields {
			if f.apply != applyLive && f.apply != applyRestart {
				t.Errorf("%s%s: apply is %q, want live or restart", prefix, f.key, f.apply)
			}
			check(prefix+f.key+".", f.fields)
		}
	}
	check("", describeConfig())
}

func TestNeedRestart(t *testing.T) {
	before, after := Default(), Default()
	if keys := NeedRestart(before, after); keys != nil || !before.Equal(after) {
		t.Errorf("nothing changed: %v", keys)
	}
	after.Log.Level, after.Log.Format = telemetry.LevelDebug, telemetry.FormatJSON
	after.Limits.MaxBodyBytes, after.Limits.MaxSessions = 2048, 5
	after.Telemetry.OTLP = &telemetry.OTLPConfig{Endpoint: "http://localhost:4318"}
	after.Store.Retention.AgeDays, after.Listen = 1, "127.0.0.1:1"
	want := []string{"listen", "log.format", "store.retention.ageDays", "telemetry.otlp"}
	if keys := NeedRestart(before, after); !slices.Equal(keys, want) || before.Equal(after) {
		t.Errorf("%v, want %v", keys, want)
	}
	if !reflect.DeepEqual(NeedRestart(after, before), want) {
		t.Error("the other way round the keys differ")
	}
}
