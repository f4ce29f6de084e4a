package figures

import "reflect"

// listed gives every list within v that is nil one of no elements, which JSON
// writes as [] and not as null: who reads a list need not ask whether there is
// one. What v points to is changed; a v that is no pointer is copied.
func listed(v any) any {
	if v == nil {
		return nil
	}
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer {
		p = reflect.New(p.Type())
		p.Elem().Set(reflect.ValueOf(v))
	}
	fillLists(p)
	return p.Interface()
}

func fillLists(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fillLists(v.Elem())
		}
	case reflect.Interface:
		if !v.IsNil() && v.CanSet() {
			v.Set(reflect.ValueOf(listed(v.Interface())))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fillLists(v.Field(i))
			}
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			e := reflect.New(v.Type().Elem()).Elem()
			e.Set(v.MapIndex(k))
			fillLists(e)
			v.SetMapIndex(k, e)
		}
	case reflect.Slice:
		if v.IsNil() && v.CanSet() && v.Type().Elem().Kind() != reflect.Uint8 { // bytes are text
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		switch v.Type().Elem().Kind() {
		case reflect.Pointer, reflect.Interface, reflect.Struct, reflect.Map, reflect.Slice:
			for i := range v.Len() {
				fillLists(v.Index(i))
			}
		}
	}
}
