proc list_all {name} {
    set n [table keys -subtable $name -count]
    return [table keys -subtable $name -notouch]
}
