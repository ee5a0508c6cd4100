/* SPDX-License-Identifier: Apache-2.0 */
/* The one C++ file: simdjson's DOM behind wire/json/document.h, versions 3.0 to 3.12. What simdjson
 * does not do is done here: duplicate keys and the exact depth in a walk over the parsed document,
 * and the place of an error by validate.c. Nothing throws: only calls that return error codes are
 * used. */

/* Elements are two words that are stored apart and would be loaded as one vector: a stall of a
 * dozen cycles each time, which makes reading a third slower. */
#ifndef __clang__
#pragma GCC optimize("no-tree-slp-vectorize")
#endif

#include <algorithm>
#include <memory>
#include <new>
#include <simdjson.h>

/* Some functions of C are named as the struct they make, which C++ calls hiding its constructor. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
extern "C" {
#include "base/assert.h"
#include "base/error.h"
#include "base/hash.h"
}
#pragma GCC diagnostic pop

#include "model/limits.h"
#include "wire/json/document.h"
#include "wire/json/validate.h"

namespace dom = simdjson::dom;

static_assert(ESK_JSON_PADDING >= simdjson::SIMDJSON_PADDING, "texts are padded enough");

#define CAPACITY_MIN 4096
#define LINEAR_FIELDS_MAX 8 /* more fields than this are sorted to find equal keys */

struct esk_json_document {
    dom::parser parser;
};

/* simdjson's elements, containers and iterators are a document's address and an index: two words
 * that C code can carry. */
template <typename To, typename From> static To carry(const From &from) {
    static_assert(sizeof(To) == sizeof(From), "two words");
    static_assert(std::is_trivially_copyable<To>::value, "carried as bytes");
    static_assert(std::is_trivially_copyable<From>::value, "carried as bytes");
    To to;
    memcpy(static_cast<void *>(&to), &from, sizeof(to));
    return to;
}

struct words {
    uintptr_t at[2];
};

template <typename From> static void store(const From &from, uintptr_t (&to)[2]) {
    words carried = carry<words>(from);
    to[0] = carried.at[0];
    to[1] = carried.at[1];
}

template <typename To> static To load(const uintptr_t (&from)[2]) {
    return carry<To>(words{{from[0], from[1]}});
}

static inline struct esk_slice slice_of(std::string_view text) {
    return esk_slice(text.data(), text.size());
}

/* By value: a range over value_unsafe()'s own reference would outlive what it refers to. */
static inline dom::array array_of(dom::element element) {
    return element.get_array().value_unsafe();
}

static inline dom::object object_of(dom::element element) {
    return element.get_object().value_unsafe();
}

static inline void decode(dom::element element, esk_json_value *value) {
    switch (element.type()) {
    case dom::element_type::STRING:
        value->type = ESK_JSON_STRING;
        value->string = slice_of(element.get_string().value_unsafe());
        break;
    case dom::element_type::INT64:
        value->type = ESK_JSON_INT64;
        value->int64 = element.get_int64().value_unsafe();
        break;
    case dom::element_type::UINT64:
        value->type = ESK_JSON_UINT64;
        value->uint64 = element.get_uint64().value_unsafe();
        break;
    case dom::element_type::DOUBLE:
        value->type = ESK_JSON_REAL;
        value->real = element.get_double().value_unsafe();
        break;
    case dom::element_type::BOOL:
        value->type = ESK_JSON_BOOL;
        value->boolean = element.get_bool().value_unsafe();
        break;
    case dom::element_type::ARRAY:
        value->type = ESK_JSON_ARRAY;
        store(array_of(element), value->container);
        break;
    case dom::element_type::OBJECT:
        value->type = ESK_JSON_OBJECT;
        store(object_of(element), value->container);
        break;
    default:
        value->type = ESK_JSON_NULL;
        value->uint64 = 0;
    }
}

/* --- the walk over what was parsed --- */

struct finding {
    bool too_deep;
    std::string_view duplicate; /* the second of two equal keys; data NULL: none */
};

struct sorted_key {
    uint64_t hash;
    std::string_view text;

    bool operator<(const sorted_key &other) const {
        return hash != other.hash ? hash < other.hash : text < other.text;
    }
};

/* By hash, then by text: no choice of keys makes this slower than a sort. */
static bool has_no_duplicates(dom::object object, finding *found) {
    size_t count = 0;
    const dom::object::iterator end = object.end();
    for (dom::object::iterator field = object.begin(); field != end; ++field) {
        count++;
    }
    std::unique_ptr<sorted_key[]> keys(new (std::nothrow) sorted_key[count]);
    ESK_ASSERT(keys != nullptr);
    sorted_key *next = keys.get();
    for (dom::object::iterator field = object.begin(); field != end; ++field) {
        std::string_view text = field.key();
        *next++ = sorted_key{esk_hash64(text.data(), text.size()), text};
    }
    std::sort(keys.get(), next);
    for (size_t i = 1; i < count; i++) {
        if (keys[i].hash == keys[i - 1].hash && keys[i].text == keys[i - 1].text) {
            found->duplicate = std::max(
                keys[i].text, keys[i - 1].text,
                [](std::string_view a, std::string_view b) { return a.data() < b.data(); });
            break;
        }
    }
    return found->duplicate.data() == nullptr;
}

static bool walk(dom::element element, int depth, finding *found);

static inline bool is_container(dom::element element) {
    dom::element_type type = element.type();
    return type == dom::element_type::ARRAY || type == dom::element_type::OBJECT;
}

static bool walk_object(dom::object object, int depth, finding *found) {
    const bool linear = object.size() <= LINEAR_FIELDS_MAX;
    if (!linear && !has_no_duplicates(object, found)) {
        return false;
    }
    std::string_view keys[LINEAR_FIELDS_MAX];
    size_t count = 0;
    const dom::object::iterator end = object.end();
    for (dom::object::iterator field = object.begin(); field != end; ++field) {
        if (linear) {
            std::string_view key = field.key();
            for (size_t i = 0; i < count; i++) {
                if (keys[i].size() == key.size() &&
                    memcmp(keys[i].data(), key.data(), key.size()) == 0) {
                    found->duplicate = key;
                    return false;
                }
            }
            keys[count++] = key;
        }
        dom::element value = field.value();
        if (is_container(value) && !walk(value, depth, found)) {
            return false;
        }
    }
    return true;
}

/* An array or object whose contents are at depth + 1. False when something was found. */
static bool walk(dom::element element, int depth, finding *found) {
    if (depth == ESK_JSON_DEPTH_MAX) {
        found->too_deep = true;
        return false;
    }
    if (element.type() == dom::element_type::OBJECT) {
        return walk_object(object_of(element), depth + 1, found);
    }
    for (dom::element child : array_of(element)) {
        if (is_container(child) && !walk(child, depth + 1, found)) {
            return false;
        }
    }
    return true;
}

/* The number of strings before the one whose text is at `wanted`; true when it was found. */
static bool count_strings(dom::element element, const char *wanted, size_t *number) {
    if (element.type() == dom::element_type::STRING) {
        (*number)++;
    } else if (element.type() == dom::element_type::ARRAY) {
        for (dom::element child : array_of(element)) {
            if (count_strings(child, wanted, number)) {
                return true;
            }
        }
    } else if (element.type() == dom::element_type::OBJECT) {
        for (dom::key_value_pair field : object_of(element)) {
            if (field.key.data() == wanted) {
                return true;
            }
            (*number)++;
            if (count_strings(field.value, wanted, number)) {
                return true;
            }
        }
    }
    return false;
}

/* --- the C header --- */

extern "C" {

esk_json_document *esk_json_document_create(void) {
    esk_json_document *document = new (std::nothrow) esk_json_document;
    ESK_ASSERT(document != nullptr);
    return document;
}

void esk_json_document_destroy(esk_json_document *document) {
    delete document;
}

/* Small capacities are rounded up, so that texts of similar sizes do not allocate again. */
static simdjson::error_code reserve(dom::parser &parser, size_t size) {
    if (parser.capacity() >= size && parser.doc.capacity() >= size) {
        return simdjson::SUCCESS;
    }
    size_t capacity = size;
    if (size <= ESK_JSON_LOOP_BYTES_MAX) {
        capacity = CAPACITY_MIN;
        while (capacity < size) {
            capacity *= 2;
        }
    }
    simdjson::error_code failed = parser.doc.allocate(capacity);
    /* simdjson counts depth a little differently between versions; the walk has the exact bound. */
    return failed ? failed : parser.allocate(capacity, ESK_JSON_DEPTH_MAX + 2);
}

static esk_err refuse(struct esk_slice text, const char *fallback, esk_error *error) {
    esk_json_fault fault;
    if (esk_json_validate(text, &fault)) {
        return esk_fail(error, ESK_ERR_INVALID, "invalid JSON: %s", fallback);
    }
    return esk_fail(error, ESK_ERR_INVALID, "invalid JSON at byte %zu: %s", fault.position,
                    fault.reason);
}

esk_err esk_json_document_parse(esk_json_document *document, struct esk_slice text,
                                esk_json_value *root, esk_error *error) {
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    if (text.size >= 3 && memcmp(text.data, byte_order_mark, 3) == 0) {
        return esk_fail(error, ESK_ERR_INVALID, "invalid JSON at byte 0: byte order mark");
    }
    dom::element element;
    simdjson::error_code failed = reserve(document->parser, text.size);
    if (!failed) {
        failed = document->parser.parse(text.data, text.size, false).get(element);
    }
    if (failed) {
        return refuse(text, simdjson::error_message(failed), error);
    }
    finding found = {false, {}};
    if (is_container(element) && !walk(element, 0, &found)) {
        if (found.too_deep) {
            return refuse(text, "nested too deeply", error);
        }
        size_t number = 0;
        count_strings(element, found.duplicate.data(), &number);
        return esk_fail(error, ESK_ERR_INVALID, "invalid JSON at byte %zu: duplicate key '%.*s'",
                        esk_json_string_position(text, number),
                        static_cast<int>(std::min<size_t>(found.duplicate.size(), 100)),
                        found.duplicate.data());
    }
    decode(element, root);
    return ESK_OK;
}

size_t esk_json_document_bytes(const esk_json_document *document) {
    /* A tape word and a structural index per byte of text, and 5/3 bytes for strings. */
    const size_t capacity = document->parser.capacity();
    return capacity * (sizeof(uint64_t) + sizeof(uint32_t)) + capacity * 5 / 3;
}

void esk_json_document_trim(esk_json_document *document, size_t keep_bytes) {
    if (esk_json_document_bytes(document) > keep_bytes) {
        document->parser = dom::parser();
    }
}

esk_json_iterator esk_json_each(const esk_json_value *value) {
    esk_json_iterator iterator = {{0, 0}, {0, 0}};
    if (value->type == ESK_JSON_ARRAY) {
        dom::array array = load<dom::array>(value->container);
        store(array.begin(), iterator.at);
        store(array.end(), iterator.end);
    } else if (value->type == ESK_JSON_OBJECT) {
        dom::object object = load<dom::object>(value->container);
        store(object.begin(), iterator.at);
        store(object.end(), iterator.end);
    }
    return iterator;
}

bool esk_json_next_element(esk_json_iterator *iterator, esk_json_value *value) {
    if (iterator->at[1] == iterator->end[1]) {
        return false;
    }
    dom::array::iterator at = load<dom::array::iterator>(iterator->at);
    decode(*at, value);
    ++at;
    store(at, iterator->at);
    return true;
}

bool esk_json_next_field(esk_json_iterator *iterator, struct esk_slice *key,
                         esk_json_value *value) {
    if (iterator->at[1] == iterator->end[1]) {
        return false;
    }
    dom::object::iterator at = load<dom::object::iterator>(iterator->at);
    *key = slice_of(at.key());
    decode(at.value(), value);
    ++at;
    store(at, iterator->at);
    return true;
}

size_t esk_json_count(const esk_json_value *value) {
    if (value->type == ESK_JSON_ARRAY) {
        return load<dom::array>(value->container).size();
    }
    return value->type == ESK_JSON_OBJECT ? load<dom::object>(value->container).size() : 0;
}

bool esk_json_find(const esk_json_value *object, const char *key, esk_json_value *value) {
    esk_json_iterator fields = esk_json_each(object);
    if (object->type != ESK_JSON_OBJECT) {
        return false;
    }
    const struct esk_slice wanted = esk_slice_text(key);
    struct esk_slice name;
    while (esk_json_next_field(&fields, &name, value)) {
        if (esk_slice_equal(name, wanted)) {
            return true;
        }
    }
    return false;
}

const char *esk_json_type_name(esk_json_type type) {
    static const char *const names[] = {"null",   "boolean", "integer", "integer",
                                        "number", "string",  "array",   "object"};
    return names[type];
}

} /* extern "C" */
