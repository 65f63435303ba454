# The header fields of a page, among them its policy: it runs the one script and has the one
# style that lie in it, known by their hashes, and talks to nobody but its own server.

# 64 hexadecimal digits in base64. Three bytes are four characters; the last three lack one.
function(base64_of_sha256 hex out)
    set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    set(text)
    foreach(at RANGE 0 60 6)
        string(SUBSTRING "${hex}00" ${at} 6 digits)
        foreach(shift 18 12 6 0)
            math(EXPR place "(0x${digits} >> ${shift}) & 63")
            string(SUBSTRING ${alphabet} ${place} 1 char)
            string(APPEND text ${char})
        endforeach()
    endforeach()
    string(REGEX REPLACE "A$" "=" text ${text})
    set(${out} ${text} PARENT_SCOPE)
endfunction()

# What stands between <TAG> and </TAG>, hashed as a browser does.
function(hash_of_element page tag out)
    string(FIND "${page}" "<${tag}>" begin)
    string(FIND "${page}" "</${tag}>" end)
    if(begin EQUAL -1 OR end LESS begin)
        message(FATAL_ERROR "the page has no <${tag}>")
    endif()
    string(LENGTH "<${tag}>" length)
    math(EXPR begin "${begin} + ${length}")
    math(EXPR length "${end} - ${begin}")
    string(SUBSTRING "${page}" ${begin} ${length} text)
    string(SHA256 hex "${text}")
    base64_of_sha256(${hex} hash)
    set(${out} "'sha256-${hash}'" PARENT_SCOPE)
endfunction()

# Defines symbol, declared in header, as the fields of the page in file, each line with CR LF.
function(embed_page_fields file header symbol out)
    file(READ ${file} page)
    hash_of_element("${page}" script script)
    hash_of_element("${page}" style style)
    string(CONCAT policy "default-src 'none'; script-src ${script}; style-src ${style}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'")
    set(source generated/${symbol}.c)
    file(CONFIGURE OUTPUT ${source} @ONLY CONTENT "#include \"${header}\"
const char ${symbol}[] =
    \"Cache-Control: no-cache\\r\\n\"
    \"Content-Security-Policy: ${policy}\\r\\n\"
    \"X-Content-Type-Options: nosniff\\r\\n\"
    \"Referrer-Policy: no-referrer\\r\\n\";
")
    set(${out} ${CMAKE_CURRENT_BINARY_DIR}/${source} PARENT_SCOPE)
endfunction()
